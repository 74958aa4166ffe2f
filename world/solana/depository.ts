import { depositoryProgram, depositoryState, depositoryVault } from './depository-accounts.ts'
import { discriminator } from './depository-parts.ts'
import { assembleDepository } from './depository-program.ts'
import { addressBytes, findProgramAddress } from './keys.ts'
import type { Machine } from './machine.ts'
import { systemProgram } from './programs.ts'
import { worldKey } from './token-definition.ts'

/** Settings of the program: who owns it, who allows payments out of the vault, and the bump of the vault. */
const stateData = (): Uint8Array =>
  Buffer.concat([
    discriminator('account:RelayDepository'),
    addressBytes(worldKey.address),
    addressBytes(worldKey.address),
    Uint8Array.of(findProgramAddress([Buffer.from('vault')], depositoryProgram).bump),
  ])

/** Places the program with its accounts, also in a world of an earlier version, which lacks them. */
export const placeDepository = (machine: Machine): void => {
  if (machine.get(depositoryProgram) !== undefined) return
  machine.addProgram(depositoryProgram, assembleDepository())
  const place = (address: string, owner: string, data: Uint8Array): void => {
    const lamports = machine.rentExempt(data.length)
    machine.put(address, { lamports, data, owner, executable: false })
  }
  place(depositoryState, depositoryProgram, stateData())
  if (machine.lamports(depositoryVault) === 0n) place(depositoryVault, systemProgram, new Uint8Array())
}
