import { programAddress } from './keys.ts'

/** Relay's depository at its public addresses: the accounts that a deposit names derive from the program. */

export const depositoryProgram = '99vQwtBwYtrqqD9YSXbdum3KBdxPAVxYTaQ3cfnJSrN2'
/** Holds the settings of the program; every deposit names it. */
export const depositoryState = programAddress([Buffer.from('relay_depository')], depositoryProgram)
/** Receives SOL, and owns the token accounts that receive tokens. */
export const depositoryVault = programAddress([Buffer.from('vault')], depositoryProgram)
