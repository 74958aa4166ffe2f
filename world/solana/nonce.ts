import type { AccountLookup } from './account.ts'
import { toBase58 } from './base58.ts'
import type { Message } from './message.ts'

const systemProgram = '1'.repeat(32)
const advanceNonce = 4
const initialized = 1
const stateAt = 4
const valueAt = 40

/**
 * Whether the transaction begins by advancing a nonce account that holds its blockhash: such a transaction never
 * expires.
 */
export const isDurable = (message: Message, lookup: AccountLookup): boolean => {
  const [first] = message.instructions
  if (!first || message.accountKeys[first.programIdIndex] !== systemProgram) return false
  const instruction = Buffer.from(first.data)
  if (instruction.length < 4 || instruction.readUInt32LE(0) !== advanceNonce) return false
  const account = lookup(message.accountKeys[first.accounts[0] ?? -1] ?? '')
  if (account?.owner !== systemProgram || account.data.length < valueAt + 32) return false
  const data = Buffer.from(account.data)
  return (
    data.readUInt32LE(stateAt) === initialized &&
    toBase58(data.subarray(valueAt, valueAt + 32)) === message.recentBlockhash
  )
}
