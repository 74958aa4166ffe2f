/** The SDK and HTTP answer alike, results and errors, for every operation of the product. */
import { sdkDoor } from './support/client-doors.ts'
import { compareDoors } from './support/door-suite.ts'

compareDoors('the SDK', ({ url }) => sdkDoor(url))
