//! A bucket store over objects in memory.

use super::*;
use crate::testing;

#[tokio::test]
async fn keeps_the_contract_of_file_stores() {
    testing::run(|quota| Arc::new(BucketStore::in_memory(*quota))).await.unwrap();
}

proptest::proptest! {
    #[test]
    fn agrees_with_the_model(plan in testing::plan()) {
        testing::check_plan(|quota| Arc::new(BucketStore::in_memory(*quota)), &plan)?;
    }

    #[test]
    fn takes_over_what_calls_have_changed(plan in testing::plan()) {
        testing::check_commits(|quota| Arc::new(BucketStore::in_memory(*quota)), &plan)?;
    }
}
