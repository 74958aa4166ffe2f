import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeFunctionData, parseAbi } from 'viem/utils'
import { assertIntent } from '#engines/custody/evm-rules.ts'
import { chainList } from '#features/chains/chain-list.ts'
import { safeRoute } from '#features/swap/route/route-checks.ts'
import type { SwapTerms } from '#features/swap/route/terms.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { EvmChainRow } from '#kernel/money/chains.ts'
import type { ProposedRoute } from '#kernel/money/swap-provider.ts'
import type { EvmCall, EvmIntent, TokenSpend } from '#kernel/task/signer.ts'
import { evmCrypto } from '#upstreams/evm/custody-crypto.ts'
import { withMinimum } from '#upstreams/evm/relay-calls.ts'
import { approveData } from '#upstreams/evm/token-calls.ts'

/** What the section takes from a quote of Relay's routers, and what custody signs of it. */

type Hex = `0x${string}`
const abi = parseAbi([
  'struct RelayCall { address target; bool allowFailure; uint256 value; bytes callData; }',
  'function transferAndMulticall(address[] tokens, uint256[] amounts, RelayCall[] calls, address refundTo, address nftRecipient, bytes metadata) payable',
  'function multicall(RelayCall[] calls, address refundTo, address nftRecipient, bytes metadata) payable',
  'function cleanupErc20s(address[] tokens, address[] recipients, uint256[] amounts, bytes metadata)',
])
const row = chainList({ urls: { '8453': 'http://base.test' }, finality: 'local' })[0] as EvmChainRow
const swaps = { ...row.swaps!, native: row.native.address }
const [current, older] = swaps.relayRouters as readonly { router: Hex; approvalProxy: Hex }[]
const { router, approvalProxy } = current!
const usdc = row.usdc as Hex
const dai = row.tokens.find(({ symbol }) => symbol === 'DAI')!
const out = dai.address as Hex
const zero: Hex = `0x${'00'.repeat(20)}`
const own: Hex = `0x${'11'.repeat(20)}`
const stranger: Hex = `0x${'22'.repeat(20)}`
const exchangeAt: Hex = `0x${'33'.repeat(20)}`
const id: Hex = `0x${'ab'.repeat(32)}`
const now = new Date('2026-01-01T00:00:00Z')
const units = 25_000_000n
const wei = 10n ** 16n
const minimum = 90n

type Change = {
  to?: Hex
  router?: Hex
  receiver?: Hex
  refundTo?: Hex
  token?: Hex
  tokenOut?: Hex
  amount?: bigint
  value?: bigint
  allowFailure?: boolean
}
/** As the provider sends it: nothing in it demands a minimum. */
const quoted = (change: Change = {}): EvmCall => {
  const { receiver = own, refundTo = own, token = usdc, tokenOut = out, amount = units } = change
  const at = change.router ?? router
  const isNative = token === zero
  const value = change.value ?? (isNative ? amount : 0n)
  const exchange = {
    target: exchangeAt,
    allowFailure: change.allowFailure ?? false,
    value: isNative ? amount : 0n,
    callData: '0xabcd' as Hex,
  }
  const payout = {
    target: at,
    allowFailure: false,
    value: 0n,
    callData: encodeFunctionData({
      abi,
      functionName: 'cleanupErc20s',
      args: [[tokenOut], [receiver], [0n], id],
    }),
  }
  const calls = [exchange, payout]
  if (isNative) {
    const args = [calls, refundTo, refundTo, id] as const
    return { to: change.to ?? at, value, data: encodeFunctionData({ abi, functionName: 'multicall', args }) }
  }
  const args = [[token], [amount], calls, refundTo, refundTo, id] as const
  const data = encodeFunctionData({ abi, functionName: 'transferAndMulticall', args })
  return { to: change.to ?? approvalProxy, value, data }
}
const approve = (spender: string = approvalProxy, amount = units): EvmCall => ({
  to: usdc,
  value: 0n,
  data: approveData(spender, amount),
})
const bound = (change: Change = {}, guaranteed = minimum): EvmCall =>
  withMinimum(quoted(change), {
    token: change.tokenOut ?? out,
    recipient: change.receiver ?? own,
    units: guaranteed,
  })
const spend = (change: Partial<TokenSpend> = {}): TokenSpend => ({
  token: usdc,
  amountUnits: units,
  spender: approvalProxy,
  ...change,
})
const nativeSpend = spend({ token: swaps.native, amountUnits: wei, spender: router })

function ruleOf(calls: EvmCall[], spends: TokenSpend[] = [spend()]): unknown {
  const intent: EvmIntent = {
    type: 'evm_batch',
    userId: 'user',
    taskId: 'task',
    operation: 'swap',
    chainId: '8453',
    tokens: [usdc],
    recipients: [approvalProxy],
    usdMicros: units,
    exit: false,
    spends,
    batch: {
      chainId: '8453',
      account: own,
      delegate: row.delegate!,
      calls,
      nonce: 1n,
      deadlineSeconds: now.getTime() / 1_000 + 600,
    },
    delegation: null,
  }
  const maxUnits = { [usdc.toLowerCase()]: units, [swaps.native.toLowerCase()]: wei }
  const chain = { chainId: '8453', delegate: row.delegate!, contracts: [], swaps, maxUnits }
  try {
    assertIntent({ intent, own, now, readCall: evmCrypto.decodeCall, chain })
    return 'signed'
  } catch (fault) {
    assert.ok(fault instanceof Fault, String(fault))
    return fault.extras.rule
  }
}

test('a swap of exactly what the intent spends, with its minimum to the own account, is signed', () => {
  assert.equal(ruleOf([approve(), bound()]), 'signed')
  assert.equal(ruleOf([bound({ token: zero, amount: wei })], [nativeSpend]), 'signed')
})

const refusals: [string, EvmCall[], string, TokenSpend[]?][] = [
  ['a swap that nothing binds', [approve(), quoted()], 'signer_selector'],
  ['a swap for another account', [approve(), bound({ receiver: stranger })], 'signer_receiver'],
  ['a swap with a refund to another account', [approve(), bound({ refundTo: stranger })], 'signer_receiver'],
  ['a swap at another contract', [approve(), bound({ to: stranger })], 'signer_contract'],
  ['a swap by another router', [approve(), bound({ router: stranger })], 'signer_contract'],
  ['a swap by the router of another proxy', [approve(), bound({ router: older!.router })], 'signer_contract'],
  ['a swap of more than the spend', [approve(), bound({ amount: units + 1n })], 'signer_spend'],
  ['an approval that is not used up', [approve(), bound({ amount: units - 1n })], 'signer_spend'],
  [
    'an approval of the router',
    [approve(router), bound()],
    'signer_spender',
    [spend(), spend({ spender: router })],
  ],
  ['a swap that may fail', [approve(), bound({ allowFailure: true })], 'signer_selector'],
  ['coins beside the token', [approve(), bound({ value: 1n })], 'signer_selector'],
  ['two swaps for one approval', [approve(), bound(), bound()], 'signer_approval'],
  ['more coins than the spend', [bound({ token: zero, amount: wei + 1n })], 'signer_spend', [nativeSpend]],
]
for (const [what, calls, rule, spends] of refusals)
  test(`custody refuses ${what}`, () => assert.equal(ruleOf(calls, spends), rule))

const terms: SwapTerms = {
  userId: 'user',
  origin: { chain: row, token: row.tokens[0]!, isNative: false },
  destination: { chain: row, token: dai, isNative: false },
  account: own,
  recipient: own,
  amountInUnits: units,
  valueInMicros: units,
  slippageBps: 100,
  maxImpactBps: 2_500,
  deadlineSeconds: 300,
  maxFeeBps: null,
}
const routeOf = (calls: EvmCall[]): ProposedRoute => ({
  provider: 'relay',
  providerRequestId: id,
  depositId: id,
  origin: { chainId: '8453', token: usdc },
  destination: { chainId: '8453', token: out },
  recipient: own,
  amountInUnits: units,
  amountOutUnits: 100n,
  amountOutMinUnits: minimum,
  fees: [],
  legs: [],
  priceImpactBps: 0,
  etaSeconds: 1,
  expiresAt: now,
  steps: {
    family: 'evm',
    chainId: '8453',
    gas: null,
    calls: calls.map((call) => ({ kind: 'swap', ...call })),
  },
  settledBy: 'receipt',
})
const rules = {
  calls: {
    decode: evmCrypto.decodeCall,
    withMinimum,
    approve: (_: string, spender: string, amountUnits: bigint) => approve(spender as Hex, amountUnits),
  },
  svmRules: undefined,
}

test('the calls of a quote are bound to its minimum, and approved by exactly its amount', () => {
  const safe = safeRoute(rules, routeOf([quoted()]), terms)
  assert.ok(safe.family === 'evm')
  assert.deepEqual(safe.calls, [approve(), bound()])
  assert.deepEqual([safe.spends, safe.target], [[spend()], approvalProxy])
})

const hostile: [string, EvmCall[]][] = [
  ['another receiver', [quoted({ receiver: stranger })]],
  ['a refund to another account', [quoted({ refundTo: stranger })]],
  ['another token out', [quoted({ tokenOut: usdc })]],
  ['another token in', [quoted({ token: out })]],
  ['a larger amount', [quoted({ amount: units + 1n })]],
  ['coins beside the token', [quoted({ value: 1n })]],
  ['coins in place of the token', [quoted({ token: zero })]],
  ['a contract that is not configured', [quoted({ to: stranger })]],
  ['a router that is not configured', [quoted({ router: stranger })]],
  ['the router of another proxy', [quoted({ router: older!.router })]],
  ['a swap that may fail', [quoted({ allowFailure: true })]],
  ['two calls', [quoted(), quoted()]],
]
for (const [what, calls] of hostile)
  test(`a quote with ${what} is refused`, () =>
    assert.throws(
      () => safeRoute(rules, routeOf(calls), terms),
      (fault) => fault instanceof Fault && fault.extras.reason === 'quote_refused',
    ))
