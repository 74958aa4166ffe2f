import { sign } from 'node:crypto'
import { addressBytes, type KeyPair } from './keys.ts'

export type AccountRole = { address: string; signer?: boolean; writable?: boolean }
export type PlannedInstruction = { program: string; accounts: AccountRole[]; data: Uint8Array }

const shortLength = (length: number): number[] =>
  length < 0x80 ? [length] : [(length & 0x7f) | 0x80, length >> 7]

const orderAccounts = (payer: string, instructions: PlannedInstruction[]): Required<AccountRole>[] => {
  const roles = new Map([[payer, { address: payer, signer: true, writable: true }]])
  for (const { program, accounts } of instructions) {
    for (const { address, signer = false, writable = false } of [...accounts, { address: program }]) {
      const known = roles.get(address) ?? { address, signer: false, writable: false }
      roles.set(address, { address, signer: known.signer || signer, writable: known.writable || writable })
    }
  }
  const rank = (role: Required<AccountRole>): number => (role.signer ? 0 : 2) + (role.writable ? 0 : 1)
  return [...roles.values()].sort((a, b) => rank(a) - rank(b))
}

/** Compiles and signs a legacy transaction, paid and signed by one world key. */
export const signedTransaction = (
  payer: KeyPair,
  instructions: PlannedInstruction[],
  blockhash: string,
): Uint8Array => {
  const roles = orderAccounts(payer.address, instructions)
  const indexOf = (address: string): number => roles.findIndex((role) => role.address === address)
  const count = ({ signer }: { signer: boolean }): number =>
    roles.filter((role) => role.signer === signer && !role.writable).length
  const message = Buffer.concat([
    Uint8Array.of(
      roles.filter((role) => role.signer).length,
      count({ signer: true }),
      count({ signer: false }),
    ),
    Uint8Array.from(shortLength(roles.length)),
    ...roles.map((role) => addressBytes(role.address)),
    addressBytes(blockhash),
    Uint8Array.from(shortLength(instructions.length)),
    ...instructions.map(({ program, accounts, data }) =>
      Uint8Array.from([
        indexOf(program),
        ...shortLength(accounts.length),
        ...accounts.map((account) => indexOf(account.address)),
        ...shortLength(data.length),
        ...data,
      ]),
    ),
  ])
  return Buffer.concat([Uint8Array.of(1), sign(null, message, payer.privateKey), message])
}
