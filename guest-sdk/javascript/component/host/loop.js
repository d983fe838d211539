// In a component, the host waits.
import clock from "host:clocks/monotonic-clock@0.2.11";
import poll from "host:io/poll@0.2.11";

import { EventLoop } from "../loop.js";

export const loop = /* @__PURE__ */ new EventLoop(poll, clock);
