pub(super) fn pack() -> anyhow::Result<()> {
    Ok(())
}
