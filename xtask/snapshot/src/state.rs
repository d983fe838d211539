//! Reads the memory and the globals of the started component, by the exports that Wizer has added.

use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, WasmList};
use wasmtime_wizer::ComponentInstanceState;

/// The started component.
pub(crate) struct State {
    pub(crate) store: Store<()>,
    pub(crate) instance: Instance,
}

impl State {
    /// Calls an added export. They only return a value, so an error means that Wizer is broken.
    #[allow(clippy::expect_used, reason = "the trait cannot return errors")]
    fn call<R>(&mut self, interface: &str, function: &str) -> R
    where
        (R,): ComponentNamedList + Lift + 'static,
    {
        let export = self
            .instance
            .get_export_index(&mut self.store, None, interface)
            .and_then(|interface| {
                self.instance.get_export_index(&mut self.store, Some(&interface), function)
            })
            .expect("Wizer adds this export");
        let function = self
            .instance
            .get_typed_func::<(), (R,)>(&mut self.store, export)
            .expect("Wizer calls it by its type");
        function.call(&mut self.store, ()).expect("it returns a value").0
    }
}

impl ComponentInstanceState for State {
    async fn call_func_ret_list_u8(
        &mut self,
        instance: &str,
        func: &str,
        contents: impl FnOnce(&[u8]) + Send,
    ) {
        let list: WasmList<u8> = self.call(instance, func);
        contents(list.as_le_slice(&self.store));
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call(instance, func)
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call(instance, func)
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call::<f32>(instance, func).to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call::<f64>(instance, func).to_bits()
    }
}
