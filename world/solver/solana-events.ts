import { toBase58 } from '#world/solana/base58.ts'
import { depositoryProgram } from '#world/solana/depository-accounts.ts'
import { discriminator } from '#world/solana/depository-parts.ts'
import { systemProgram } from './chains.ts'
import type { Hex } from './request.ts'

/** Deposits as the program has logged them: any program can log the same bytes, so the one that runs is followed. */

export type LoggedDeposit = { from: string; currency: string; units: bigint; id: Hex }

const eventTag = discriminator('event:DepositEvent')
const keyBytes = 32

const readEvent = (bytes: Buffer): LoggedDeposit | undefined => {
  if (!bytes.subarray(0, eventTag.length).equals(eventTag)) return undefined
  const depositorAt = eventTag.length
  const tokenAt = depositorAt + keyBytes + 1
  const hasToken = bytes[tokenAt - 1] === 1
  const amountAt = tokenAt + (hasToken ? keyBytes : 0)
  return {
    from: toBase58(bytes.subarray(depositorAt, depositorAt + keyBytes)),
    currency: hasToken ? toBase58(bytes.subarray(tokenAt, amountAt)) : systemProgram,
    units: bytes.readBigUInt64LE(amountAt),
    id: `0x${bytes.subarray(amountAt + 8).toString('hex')}`,
  }
}

export const loggedDeposits = (logs: readonly string[]): LoggedDeposit[] => {
  const running: string[] = []
  return logs.flatMap((line) => {
    const [, program, word] = /^Program (\S+) (invoke|success|failed)/.exec(line) ?? []
    if (program !== undefined && word === 'invoke') running.push(program)
    else if (program !== undefined) running.pop()
    const data = /^Program data: (\S+)$/.exec(line)?.[1]
    if (data === undefined || running.at(-1) !== depositoryProgram) return []
    return readEvent(Buffer.from(data, 'base64')) ?? []
  })
}
