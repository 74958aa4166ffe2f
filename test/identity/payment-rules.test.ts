import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertIntent } from '#engines/custody/evm-rules.ts'
import { chainList } from '#features/chains/chain-list.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EvmCall, EvmIntent, TokenSpend } from '#kernel/task/signer.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { payData } from '#upstreams/evm/till-contract.ts'
import { approveData } from '#upstreams/evm/token-calls.ts'

/** What custody signs of a payment for credits. */

const row = chainList({ urls: { '8453': 'http://base.test' }, finality: 'local' })[0] as EvmChainRow
const native = row.native.address
const till = '0x7111000000000000000000000000000000000001'
const own = '0x1111111111111111111111111111111111111111'
const stranger = '0x2222222222222222222222222222222222222222'
const taskId = '01a20766-9f3d-7d13-8775-e35412af6623'
const otherTask = '01a20766-9f3d-7d13-8775-e35412af6624'
const now = new Date('2026-01-01T00:00:00Z')
const wei = 10n ** 15n

const pay = (change: Partial<EvmCall> = {}): EvmCall => ({
  to: till,
  value: wei,
  data: payData(taskId),
  ...change,
})
const spend = (change: Partial<TokenSpend> = {}): TokenSpend => ({
  token: native,
  amountUnits: wei,
  spender: till,
  ...change,
})

function sign(calls: EvmCall[], spends: TokenSpend[] = [spend()], hasTill = true): void {
  const intent: EvmIntent = {
    type: 'evm_batch',
    userId: 'user',
    taskId,
    operation: 'credits_recharge',
    chainId: '8453',
    tokens: [native],
    recipients: [till],
    usdMicros: 5_000_000n,
    exit: false,
    spends,
    batch: {
      chainId: '8453',
      account: own,
      delegate: row.delegate!,
      calls,
      nonce: 1n << 64n,
      deadlineSeconds: now.getTime() / 1_000 + 600,
    },
    delegation: null,
  }
  const chain = {
    chainId: '8453',
    delegate: row.delegate!,
    contracts: [],
    maxUnits: { [row.usdc]: 10n ** 12n },
    ...(hasTill && { till: { address: till, maxUnits: 5n * wei, native } }),
  }
  assertIntent({ intent, own, chain, now, readCall: evmCrypto.decodeCall })
}
const refuses = (rule: string, run: () => void) =>
  assert.throws(run, (error) => error instanceof Fault && error.extras.rule === `signer_${rule}`, rule)

test('one payment for the task of the intent is signed, up to the cap', () => {
  sign([pay()])
  sign([pay({ value: 5n * wei })], [spend({ amountUnits: 5n * wei })])
})

test('a payment of more than the cap, of nothing or of another amount than declared is refused', () => {
  refuses('cap', () => sign([pay({ value: 5n * wei + 1n })], [spend({ amountUnits: 5n * wei + 1n })]))
  refuses('amount', () => sign([pay({ value: 0n })], [spend({ amountUnits: 0n })]))
  refuses('payment', () => sign([pay({ value: wei + 1n })]))
  refuses('payment', () => sign([pay()], []))
  refuses('payment', () => sign([pay()], [spend({ token: row.usdc })]))
  refuses('payment', () => sign([pay()], [spend({ spender: stranger })]))
  refuses('payment', () => sign([pay()], [spend(), spend()]))
})

test('a payment to another contract, for another task, or beside other calls is refused', () => {
  refuses('contract', () => sign([pay({ to: stranger })]))
  refuses('contract', () => sign([pay()], [spend()], false))
  refuses('payment', () => sign([pay({ data: payData(otherTask) })]))
  refuses('payment', () => sign([pay(), pay()]))
  refuses('payment', () => sign([pay(), { to: row.usdc, value: 0n, data: approveData(till, 1n) }]))
})

test('a transfer without a call, other bytes and a word that is no task are refused', () => {
  refuses('send', () => sign([pay({ data: '0x' })]))
  refuses('selector', () => sign([pay({ data: `${payData(taskId)}00` })]))
  refuses('selector', () => sign([pay({ data: payData(taskId).replace('000000', '100000') })]))
  refuses('selector', () => sign([pay({ data: `${payData(taskId).slice(0, 10)}${'0'.repeat(64)}` })]))
})
