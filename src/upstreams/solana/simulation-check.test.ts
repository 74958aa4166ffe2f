import assert from 'node:assert/strict'
import { test } from 'node:test'
import { base58, bytesOfAddress } from './base58.ts'
import { systemProgram, tokenProgram } from './program-ids.ts'
import { readTrial } from './simulation-check.ts'
import type { Account } from './solana.ts'

const key = (fill: number) => base58(new Uint8Array(32).fill(fill))
const [own, sponsor, tokens, mint] = [1, 2, 3, 4].map(key) as [string, string, string, string]

const coins = (lamports: bigint): Account => ({ lamports, owner: systemProgram, data: new Uint8Array() })
const tokensOf = (owner: string, units: bigint, lamports = 2_039_280n): Account => {
  const data = Buffer.alloc(165)
  data.set(bytesOfAddress(mint), 0)
  data.set(bytesOfAddress(owner), 32)
  data.writeBigUInt64LE(units, 64)
  return { lamports, owner: tokenProgram, data }
}
type Balances = [sponsor: Account, own: Account, tokens: Account | undefined]
const check = (before: Balances, after: Balances, spends = [{ token: mint, amountUnits: 10n, to: key(5) }]) =>
  readTrial({
    account: own,
    feePayer: sponsor,
    native: systemProgram,
    spends,
    accounts: [sponsor, own, tokens],
    feeLamports: 5_000n,
    baselineFeeLamports: 0n,
    trial: {
      simulation: { slot: 1n, ok: true, reason: '', units: 1n, accounts: after },
      baseline: { slot: 1n, ok: true, reason: '', units: 1n, accounts: before },
      feeLamports: undefined,
    },
  })

test('fee, rent of a new account and the agreed spend are in order, and the rent is counted', () => {
  const spent: [Balances, Balances] = [
    [coins(10_000n), coins(0n), tokensOf(own, 10n)],
    [coins(5_000n), coins(0n), tokensOf(own, 0n)],
  ]
  assert.deepEqual(check(...spent), { violation: undefined, rentLamports: 0n })
  const opened: [Balances, Balances] = [
    [coins(3_000_000n), coins(0n), undefined],
    [coins(3_000_000n - 5_000n - 2_039_280n), coins(0n), tokensOf(own, 0n)],
  ]
  assert.deepEqual(check(...opened), { violation: undefined, rentLamports: 2_039_280n })
})

test('one lamport more from the sponsor, or one unit more from the user, is a violation', () => {
  const drained = check([coins(10_000n), coins(0n), undefined], [coins(4_999n), coins(0n), undefined])
  assert.match(drained.violation ?? '', /sponsor/)
  const taken = check(
    [coins(10_000n), coins(0n), tokensOf(own, 11n)],
    [coins(5_000n), coins(0n), tokensOf(own, 0n)],
  )
  assert.match(taken.violation ?? '', /tokens/)
  const native = check([coins(10_000n), coins(1n), undefined], [coins(5_000n), coins(0n), undefined])
  assert.match(native.violation ?? '', /SOL/)
  const reassigned = check(
    [coins(10_000n), coins(0n), tokensOf(own, 11n)],
    [coins(5_000n), coins(0n), tokensOf(key(9), 11n)],
  )
  assert.match(reassigned.violation ?? '', /tokens/)
})

test('tokens of others in the same transaction are none of the user', () => {
  const other = check(
    [coins(10_000n), coins(0n), tokensOf(key(9), 500n)],
    [coins(5_000n), coins(0n), tokensOf(key(9), 0n)],
  )
  assert.equal(other.violation, undefined)
})
