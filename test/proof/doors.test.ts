/** A door without a transport and the door of HTTP answer alike, results and faults, for every operation of the product. */
import { inProcessDoor } from '../harness/in-process-door.ts'
import { compareDoors } from './support/door-suite.ts'

compareDoors('a door without a transport', ({ operations, invocation }) =>
  inProcessDoor(operations, invocation),
)
