// Outside a component, this is the host of the test.
import { delegate } from "../current.js";

export default delegate("secrets");
