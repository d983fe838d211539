//! Size of what a browser loads.

use crate::served::{Served, record_many};

/// Maximum bytes of a page with everything that it loads.
const LOAD_BYTES_MAX: usize = 60 * 1024;

#[tokio::test]
async fn the_first_load_is_small_and_assets_are_kept() {
    let served = Served::new().await;
    let recorder = served.recorder();
    record_many(&recorder, 20).await;
    let page = served.get("/").await;
    let mut bytes = page.head.len() + page.body.len();
    let mut count = 0;
    for part in page.body.split("\"/assets/").skip(1) {
        let path = format!("/assets/{}", part.split('"').next().unwrap());
        let asset = served.send("GET", &path, &[], "").await;
        assert_eq!(asset.status, 200, "{path}");
        assert!(asset.head.contains("cache-control: public, max-age=31536000, immutable"));
        bytes += asset.head.len() + asset.body.len();
        count += 1;
    }
    assert_eq!(count, 5, "{}", page.body);
    assert!(bytes <= LOAD_BYTES_MAX, "{bytes} bytes");
}
