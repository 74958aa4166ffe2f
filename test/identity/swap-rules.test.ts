import assert from 'node:assert/strict'
import { test } from 'node:test'
import { concat, encodeFunctionData, parseAbi } from 'viem/utils'
import { assertIntent } from '#engines/custody/evm-rules.ts'
import { chainList } from '#features/chains/chain-list.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { EvmCall, EvmIntent, TokenSpend } from '#kernel/task/signer.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { approveData } from '#upstreams/evm/token-calls.ts'

/** What custody signs of a swap, call by call. */

type Hex = `0x${string}`
const abi = parseAbi([
  'function swapExactTokensForTokens(uint256, uint256, address[], address, uint256)',
  'function swapExactTokensForETH(uint256, uint256, address[], address, uint256)',
  'function swapExactETHForTokens(uint256, address[], address, uint256) payable',
  'function deposit() payable',
  'function withdraw(uint256)',
  'function depositErc20(address, address, uint256, bytes32)',
  'function depositNative(address, bytes32) payable',
])
const row = chainList({ urls: { '8453': 'http://base.test' }, finality: 'local' })[0] as EvmChainRow
const swaps = { ...row.swaps!, native: row.native.address }
const [router] = swaps.routers as [Hex]
const depository = swaps.depository as Hex
const weth = swaps.wrapped as Hex
const usdc = row.usdc as Hex
const meme: Hex = '0x3333333333333333333333333333333333333333'
const own: Hex = '0x1111111111111111111111111111111111111111'
const stranger: Hex = '0x2222222222222222222222222222222222222222'
const requestId: Hex = `0x${'ab'.repeat(32)}`
const now = new Date('2026-01-01T00:00:00Z')
const dueSeconds = BigInt(now.getTime() / 1_000 + 600)
const units = 25_000_000n
const wei = 10n ** 16n

const call = (to: string, data: string, value = 0n): EvmCall => ({ to, data, value })
const encode = (functionName: string, args: unknown[]): Hex =>
  encodeFunctionData({ abi, functionName, args } as Parameters<typeof encodeFunctionData>[0])
const approve = (spender: string = router, amount = units, token: string = usdc) =>
  call(token, approveData(spender, amount))
const swap = (change: { path?: Hex[]; to?: Hex; min?: bigint; router?: string; units?: bigint } = {}) =>
  call(
    change.router ?? router,
    concat([
      encode('swapExactTokensForTokens', [
        change.units ?? units,
        change.min ?? 1n,
        change.path ?? [usdc, weth],
        change.to ?? own,
        dueSeconds,
      ]),
      requestId,
    ]),
  )
const sell = (path: Hex[] = [usdc, weth]) =>
  call(router, encode('swapExactTokensForETH', [units, 1n, path, own, dueSeconds]))
const buy = (value = wei, path: Hex[] = [weth, usdc]) =>
  call(router, encode('swapExactETHForTokens', [1n, path, own, dueSeconds]), value)
const bridge = (depositor: Hex = own, to: string = depository, amount = units) =>
  call(to, encode('depositErc20', [depositor, usdc, amount, requestId]))
const bridgeNative = (value = wei) => call(depository, encode('depositNative', [own, requestId]), value)
const wrap = call(weth, encode('deposit', []), wei)
const unwrap = (value = 0n) => call(weth, concat([encode('withdraw', [wei]), requestId]), value)

const spendOf = (spender: string, token: string = usdc, amountUnits = units): TokenSpend => ({
  token,
  amountUnits,
  spender,
})
const nativeSpend = (spender: string, amountUnits = wei) => spendOf(spender, swaps.native, amountUnits)

function sign(calls: EvmCall[], spends: TokenSpend[], served = true): void {
  const intent: EvmIntent = {
    type: 'evm_batch',
    userId: 'user',
    taskId: 'task',
    operation: 'swap_execute',
    chainId: '8453',
    tokens: [usdc],
    recipients: [router],
    usdMicros: units,
    exit: false,
    spends,
    batch: {
      chainId: '8453',
      account: own,
      delegate: row.delegate!,
      calls,
      nonce: 1n,
      deadlineSeconds: Number(dueSeconds),
    },
    delegation: null,
  }
  assertIntent({
    intent,
    own,
    now,
    readCall: evmCrypto.decodeCall,
    chain: {
      chainId: '8453',
      delegate: row.delegate!,
      contracts: [],
      ...(served && { swaps }),
      maxUnits: { [usdc.toLowerCase()]: units, [swaps.native.toLowerCase()]: wei },
    },
  })
}
const ruleOf = (calls: EvmCall[], spends: TokenSpend[], served?: boolean): unknown => {
  try {
    sign(calls, spends, served)
    return 'signed'
  } catch (fault) {
    assert.ok(fault instanceof Fault, String(fault))
    return fault.extras.rule
  }
}
const bySwap = [spendOf(router)]

test('custody signs swaps, wraps and deposits of exactly what the intent spends', () => {
  sign([approve(), swap()], bySwap)
  sign([approve(), sell()], bySwap)
  sign([buy()], [nativeSpend(router)])
  sign([approve(depository), bridge()], [spendOf(depository)])
  sign([bridgeNative()], [nativeSpend(depository)])
  sign([wrap], [])
  sign([unwrap()], [])
})

test('a token without a cap can be sold, and a listed one only up to its cap', () => {
  const more = units * 1_000n
  sign(
    [approve(router, more, meme), swap({ path: [meme, weth], units: more })],
    [spendOf(router, meme, more)],
  )
  const above = [approve(router, units + 1n), swap({ units: units + 1n })]
  assert.equal(ruleOf(above, [spendOf(router, usdc, units + 1n)]), 'signer_cap')
  assert.equal(ruleOf([buy(wei + 1n)], [nativeSpend(router, wei + 1n)]), 'signer_cap')
  assert.equal(ruleOf([bridgeNative(wei + 1n)], [nativeSpend(depository, wei + 1n)]), 'signer_cap')
})

const refusals: [string, EvmCall[], TokenSpend[], string][] = [
  ['an output to another account', [approve(), swap({ to: stranger })], bySwap, 'signer_receiver'],
  ['no minimum output', [approve(), swap({ min: 0n })], bySwap, 'signer_minimum'],
  ['another router', [approve(), swap({ router: stranger })], bySwap, 'signer_contract'],
  ['a path of one token', [approve(), swap({ path: [usdc] })], bySwap, 'signer_path'],
  ['native output by another token', [approve(), sell([usdc, meme])], bySwap, 'signer_path'],
  ['native input by another token', [buy(wei, [meme, usdc])], [nativeSpend(router)], 'signer_path'],
  ['another spender', [approve(stranger), swap()], [spendOf(stranger)], 'signer_spender'],
  [
    'an approval above the swap',
    [approve(router, units + 1n), swap()],
    [...bySwap, spendOf(router, usdc, units + 1n)],
    'signer_approval',
  ],
  ['a swap without its approval', [swap()], bySwap, 'signer_approval'],
  ['an approval without a swap', [approve()], bySwap, 'signer_approval'],
  ['a swap that the intent does not list', [approve(), swap()], [], 'signer_approval'],
  ['a value that the intent does not list', [buy()], [], 'signer_spend'],
  ['a value beside a swap of tokens', [approve(), { ...swap(), value: 1n }], bySwap, 'signer_value'],
  ['a value beside an approval', [{ ...approve(), value: 1n }, swap()], bySwap, 'signer_value'],
  ['a value beside an unwrap', [unwrap(1n)], [], 'signer_value'],
  ['a swap of nothing', [buy(0n)], [nativeSpend(router, 0n)], 'signer_amount'],
  [
    'a deposit for another account',
    [approve(depository), bridge(stranger)],
    [spendOf(depository)],
    'signer_receiver',
  ],
  [
    'a deposit at another contract',
    [approve(depository), bridge(own, stranger)],
    [spendOf(depository)],
    'signer_contract',
  ],
  ['a wrap at another contract', [{ ...wrap, to: stranger }], [], 'signer_contract'],
  [
    'bytes after the id of the request',
    [approve(), { ...swap(), data: `${swap().data}00` }],
    bySwap,
    'signer_selector',
  ],
]
for (const [name, calls, spends, rule] of refusals)
  test(`custody refuses ${name}`, () => assert.equal(ruleOf(calls, spends), rule))

test('custody refuses every call of a swap where nothing is swapped', () => {
  for (const [calls, spends] of [
    [[wrap], []],
    [[buy()], [nativeSpend(router)]],
    [[bridgeNative()], [nativeSpend(depository)]],
  ] as [EvmCall[], TokenSpend[]][])
    assert.equal(ruleOf(calls, spends, false), 'signer_contract')
})
