import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { encodeAbiParameters, encodeFunctionData, parseAbi, toEventSelector } from 'viem/utils'
import { readRelayCall, routerPaymentOf, withMinimum } from './relay-calls.ts'
import type { Hex } from './wire.ts'

const inner = 'struct RelayCall { address target; bool allowFailure; uint256 value; bytes callData; }'
const runs = 'RelayCall[] calls, address refundTo, address nftRecipient'
const abi3 = parseAbi([
  inner,
  `function transferAndMulticall(address[] tokens, uint256[] amounts, ${runs}, bytes metadata) payable`,
  `function multicall(${runs}, bytes metadata) payable`,
  'function cleanupErc20s(address[] tokens, address[] recipients, uint256[] amounts, bytes metadata)',
  'function cleanupNative(uint256 amount, address recipient, bytes metadata)',
  'function cleanupNativeViaCall(uint256 amount, address to, bytes data)',
])
const abi2 = parseAbi([
  inner,
  `function transferAndMulticall(address[] tokens, uint256[] amounts, ${runs}) payable`,
  `function multicall(${runs}) payable`,
  'function cleanupErc20s(address[] tokens, address[] recipients, uint256[] amounts)',
  'function cleanupNative(uint256 amount, address recipient)',
  'function cleanupNativeViaCall(uint256 amount, address to, bytes data)',
])
const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const [zero, proxy, router, own, usdc, dai, pool, stranger] = ['0', '1', '2', '3', '5', '6', '4', '7'].map(
  address,
) as [Hex, Hex, Hex, Hex, Hex, Hex, Hex, Hex]
const id: Hex = `0x${'ab'.repeat(32)}`
const opaque: Hex = `0x${'cd'.repeat(40)}`

type Inner = { target: Hex; allowFailure: boolean; value: bigint; callData: Hex }
type Version = '2.1' | '3'
const versions: readonly Version[] = ['2.1', '3']
const call = (target: Hex, callData: Hex, change: Partial<Inner> = {}): Inner => ({
  target,
  allowFailure: false,
  value: 0n,
  callData,
  ...change,
})
const swap = (change: Partial<Inner> = {}): Inner => call(pool, opaque, change)
const paid = (version: Version, tokens: Hex[], to: Hex[], units: bigint[]) =>
  call(
    router,
    version === '3'
      ? encodeFunctionData({ abi: abi3, functionName: 'cleanupErc20s', args: [tokens, to, units, id] })
      : encodeFunctionData({ abi: abi2, functionName: 'cleanupErc20s', args: [tokens, to, units] }),
  )
const paidCoin = (version: Version, units: bigint, to: Hex) =>
  call(
    router,
    version === '3'
      ? encodeFunctionData({ abi: abi3, functionName: 'cleanupNative', args: [units, to, id] })
      : encodeFunctionData({ abi: abi2, functionName: 'cleanupNative', args: [units, to] }),
  )
const paidByCall = (units: bigint, to: Hex, data: Hex = '0x') =>
  call(
    router,
    encodeFunctionData({ abi: abi3, functionName: 'cleanupNativeViaCall', args: [units, to, data] }),
  )

type Change = {
  to?: Hex
  value?: bigint
  tokens?: Hex[]
  amounts?: bigint[]
  refundTo?: Hex
  nftRecipient?: Hex
  tail?: string
}
const viaProxy = (version: Version, calls: Inner[], change: Change = {}) => {
  const { to = proxy, value = 0n, tokens = [usdc], amounts = [7n], tail = '' } = change
  const { refundTo = own, nftRecipient = own } = change
  const data =
    version === '3'
      ? encodeFunctionData({
          abi: abi3,
          functionName: 'transferAndMulticall',
          args: [tokens, amounts, calls, refundTo, nftRecipient, id],
        })
      : encodeFunctionData({
          abi: abi2,
          functionName: 'transferAndMulticall',
          args: [tokens, amounts, calls, refundTo, nftRecipient],
        })
  return { to, value, data: `${data}${tail}` }
}
const atRouter = (version: Version, calls: Inner[], change: Change = {}) => {
  const { to = router, value = 7n, refundTo = own, nftRecipient = own } = change
  const data =
    version === '3'
      ? encodeFunctionData({
          abi: abi3,
          functionName: 'multicall',
          args: [calls, refundTo, nftRecipient, id],
        })
      : encodeFunctionData({ abi: abi2, functionName: 'multicall', args: [calls, refundTo, nftRecipient] })
  return { to, value, data }
}
const tokensOut = { token: dai, recipient: own, units: 5n }
const coinsOut = { ...tokensOut, token: null }
const allTokens = (version: Version) => paid(version, [dai], [own], [0n])
const facts = {
  name: 'multicall',
  contract: proxy,
  router,
  tokenIn: usdc,
  tokenOut: dai,
  amountInUnits: 7n,
  amountOutMinUnits: 5n,
  recipient: own,
  refundTo: own,
}

for (const version of versions) {
  test(`a swap by router ${version} is read once it has a payout of its minimum`, () => {
    const sent = viaProxy(version, [swap(), allTokens(version)])
    assert.equal(readRelayCall(sent), undefined)
    const bound = withMinimum(sent, tokensOut)
    assert.deepEqual(
      bound,
      viaProxy(version, [swap(), paid(version, [dai], [own], [5n]), allTokens(version)]),
    )
    assert.deepEqual(readRelayCall(bound), facts)
    const native = withMinimum(
      atRouter(version, [swap({ value: 7n }), paid(version, [dai, usdc], [own, own], [0n, 0n])]),
      tokensOut,
    )
    assert.deepEqual(readRelayCall(native), { ...facts, contract: router, tokenIn: null })
    const intoCoins = viaProxy(version, [
      swap(),
      paid(version, [usdc], [own], [0n]),
      paidCoin(version, 0n, own),
    ])
    assert.deepEqual(readRelayCall(withMinimum(intoCoins, coinsOut)), { ...facts, tokenOut: null })
  })

  test(`router ${version} pays coins in the way that reports each payment`, () => {
    const sent = viaProxy(version, [swap(), paidByCall(0n, own)])
    assert.deepEqual(
      withMinimum(sent, coinsOut),
      viaProxy(version, [swap(), paidCoin(version, 5n, own), paidCoin(version, 0n, own)]),
    )
    const withData = viaProxy(version, [swap(), paidByCall(0n, own, '0x00')])
    assert.deepEqual(withMinimum(withData, coinsOut), withData)
  })

  const pay = paid(version, [dai], [own], [5n])
  const all = allTokens(version)
  const other: Version = version === '3' ? '2.1' : '3'
  const hostile: [string, ReturnType<typeof viaProxy>][] = [
    ['no call', viaProxy(version, [])],
    ['no payout', viaProxy(version, [swap()])],
    ['a payout of the rest alone', viaProxy(version, [swap(), all])],
    ['a payout of the minimum alone', viaProxy(version, [swap(), pay])],
    [
      'a payout of the rest to another account',
      viaProxy(version, [swap(), pay, paid(version, [dai], [stranger], [0n])]),
    ],
    [
      'a part of the rest for another account',
      viaProxy(version, [swap(), pay, paid(version, [dai, usdc], [own, stranger], [0n, 0n])]),
    ],
    [
      'a minimum for another account',
      viaProxy(version, [swap(), paid(version, [dai], [stranger], [5n]), all]),
    ],
    ['a minimum of another token', viaProxy(version, [swap(), paid(version, [usdc], [own], [5n]), all])],
    [
      'a minimum of two tokens',
      viaProxy(version, [swap(), paid(version, [dai, usdc], [own, own], [5n, 1n]), all]),
    ],
    ['a payout that may fail', viaProxy(version, [swap(), { ...pay, allowFailure: true }, all])],
    ['a payout of the rest that may fail', viaProxy(version, [swap(), pay, { ...all, allowFailure: true }])],
    ['a payout of another contract', viaProxy(version, [swap(), { ...pay, target: pool }, all])],
    ['a payout in the other form', viaProxy(version, [swap(), paid(other, [dai], [own], [5n]), all])],
    ['lists of two lengths', viaProxy(version, [swap(), paid(version, [dai], [own, own], [5n]), all])],
    ['a call after the payouts', viaProxy(version, [swap(), pay, all, swap()])],
    ['a swap that may fail', viaProxy(version, [swap({ allowFailure: true }), pay, all])],
    ['a call of the own account', viaProxy(version, [call(own, opaque), pay, all])],
    ['a call with coins that were not sent', viaProxy(version, [swap({ value: 1n }), pay, all])],
    ['coins beside the token', viaProxy(version, [swap(), pay, all], { value: 1n })],
    ['a second token', viaProxy(version, [swap(), pay, all], { tokens: [usdc, dai], amounts: [7n, 7n] })],
    ['an amount without its token', viaProxy(version, [swap(), pay, all], { amounts: [7n, 7n] })],
    ['nothing taken', viaProxy(version, [swap(), pay, all], { tokens: [], amounts: [] })],
    ['tokens that the router takes itself', viaProxy(version, [swap(), pay, all], { to: router })],
    ['collectibles for another account', viaProxy(version, [swap(), pay, all], { nftRecipient: stranger })],
    ['bytes behind the arguments', viaProxy(version, [swap(), pay, all], { tail: '00' })],
    [
      'more calls than a route has',
      viaProxy(version, [...Array.from({ length: 32 }, () => swap()), pay, all]),
    ],
    ['coins sent to another contract', atRouter(version, [swap(), pay, all], { to: proxy })],
    ['more coins than were sent', atRouter(version, [swap({ value: 8n }), pay, all])],
  ]
  for (const [what, sent] of hostile)
    test(`a multicall of router ${version} with ${what} cannot be read`, () =>
      assert.equal(readRelayCall(sent), undefined))

  test(`what a hostile call of router ${version} changes is seen, or the call cannot be read`, () => {
    const read = (change: Change) => readRelayCall(viaProxy(version, [swap(), pay, all], change))
    assert.deepEqual(read({ refundTo: stranger, nftRecipient: zero }), { ...facts, refundTo: stranger })
    assert.deepEqual(read({ amounts: [8n] }), { ...facts, amountInUnits: 8n })
    assert.deepEqual(read({ tokens: [dai] }), { ...facts, tokenIn: dai })
    assert.deepEqual(read({ to: stranger }), { ...facts, contract: stranger })
    assert.deepEqual(read({ tail: id.slice(2) }), facts)
  })

  test(`no byte of a call of router ${version} changes unseen, but for what the inner swap does`, () => {
    const { data, ...sent } = viaProxy(version, [swap(), pay, all])
    let unseen = 0
    for (let at = 2; at < data.length; at += 2) {
      const byte = data.slice(at, at + 2)
      for (const change of ['ff', '01', (Number.parseInt(byte, 16) ^ 0x80).toString(16).padStart(2, '0')]) {
        if (change === byte) continue
        const changed = readRelayCall({ ...sent, data: `${data.slice(0, at)}${change}${data.slice(at + 2)}` })
        if (!isDeepStrictEqual(changed, facts)) continue
        assert.ok(['cd', '44', 'ab'].includes(byte), `byte ${at / 2 - 1} is not of the inner swap or the id`)
        unseen += 1
      }
    }
    assert.ok(unseen > 0)
  })
}

test('a payment of a configured router is read, and what it receives is not', () => {
  const log = (from: Hex, to: Hex) => ({
    address: from,
    topics: [toEventSelector('SolverNativeTransfer(address,uint256)')],
    data: encodeAbiParameters([{ type: 'address' }, { type: 'uint256' }], [to, 9n]),
  })
  const read = (from: Hex, to: Hex) =>
    routerPaymentOf(log(from, to) as Parameters<typeof routerPaymentOf>[0], [
      router.toUpperCase().replace('0X', '0x'),
    ])
  assert.deepEqual(read(router, own), { account: own, amountUnits: 9n })
  assert.equal(read(router, router), undefined)
  assert.equal(read(stranger, own), undefined)
})
