//! What an overlay does beyond the contract of all stores.

use super::*;
use crate::{MemoryStore, Quota, testing};

fn over_memory(quota: &Quota) -> Arc<dyn FileStore> {
    Arc::new(Overlay::new(Arc::new(MemoryStore::new(*quota)), &Budget::new(u64::MAX)))
}

proptest::proptest! {
    #[test]
    fn agrees_with_the_model(plan in testing::plan()) {
        testing::check_plan(over_memory, &plan)?;
    }
}

#[tokio::test]
async fn keeps_the_contract_of_file_stores() {
    // Overlays are committed to stores and not to each other.
    let single = |check: &&testing::Check| {
        !["a_commit_is_all_that_a_call_did", "the_first_to_commit_wins"].contains(&check.name)
    };
    for check in testing::Check::all().iter().filter(single) {
        check.run(over_memory(&testing::QUOTA)).await.unwrap();
    }
}
