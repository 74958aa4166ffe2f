/** The command line and HTTP answer alike, results and errors, for every operation of the product. */
import { cliDoor } from './support/client-doors.ts'
import { compareDoors } from './support/door-suite.ts'

compareDoors('the command line', ({ url }) => cliDoor(url))
