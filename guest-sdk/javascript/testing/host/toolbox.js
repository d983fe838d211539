// Outside of a component: the host that the test has made.
import { delegate } from "../current.js";

export default delegate("toolbox");
