/** Deposits that the solver does not fill: each reason, what comes back, and what each status says meanwhile. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { encodeFunctionData, erc20Abi, type Hex, type PrivateKeyAccount, parseAbi } from 'viem'
import { typeErrors } from './solver/published-types.ts'
import {
  depository,
  native,
  pollFor,
  type QuoteReply,
  type SolverWorld,
  startSolverWorld,
  usdc,
} from './solver/solver-world.ts'

const base = '8453'
const depositoryAbi = parseAbi([
  'function depositErc20(address depositor, address token, uint256 amount, bytes32 id)',
  'function depositNative(address depositor, bytes32 id) payable',
])

let world: SolverWorld
let trader: PrivateKeyAccount

before(async () => {
  world = await startSolverWorld(['8453', '42161'])
  trader = await world.newTrader()
})
after(() => world?.[Symbol.asyncDispose]())
beforeEach(() => world.set('/realism', { preset: 'quiet', sponsoredRefunds: true }))

const quoteFor = (change: Record<string, unknown> = {}) =>
  world.quote({
    user: trader.address,
    recipient: trader.address,
    refundTo: trader.address,
    originChainId: 8453,
    destinationChainId: 42161,
    originCurrency: usdc[base],
    destinationCurrency: usdc['42161'],
    amount: '5000000',
    ...change,
  })
const idOf = ({ steps }: QuoteReply): Hex => steps.at(-1)?.requestId ?? '0x'
/** What a deposit at the contract names. */
const orderOf = ({ protocol }: QuoteReply): Hex => protocol?.v2.orderId ?? '0x'
const dollars = () => world.balance(base, usdc[base], trader.address)

const deposit = async (id: Hex, units: bigint, token: Hex = usdc[base], sender = trader): Promise<Hex> => {
  const wallet = world.walletOn(base, sender)
  const client = world.clients[base]
  const approval = { abi: erc20Abi, functionName: 'approve', args: [depository, units] } as const
  await client.waitForTransactionReceipt({
    hash: await wallet.writeContract({
      address: token,
      ...approval,
      account: sender,
      chain: world.chains[base],
    }),
  })
  const args = [sender.address, token, units, id] as const
  const data = encodeFunctionData({ abi: depositoryAbi, functionName: 'depositErc20', args })
  const hash = await wallet.sendTransaction({
    to: depository,
    data,
    account: sender,
    chain: world.chains[base],
  })
  await client.waitForTransactionReceipt({ hash })
  return hash
}

/** The deposit came back in full, and the reason is shown. */
const assertRefunded = async (id: string, before: bigint, failReason: string): Promise<void> => {
  assert.equal((await world.end(id)).status, 'refund')
  const { data, ...rest } = await world.requestOf(id)
  assert.equal(data.failReason, failReason)
  assert.equal(data.outTxs.length, 1)
  assert.equal(await dollars(), before)
  assert.deepEqual(typeErrors('Requests', { requests: [{ data, ...rest }] }), [])
}

const provoked: Record<string, () => Promise<string>> = {
  TTL_EXPIRED: async () => {
    const quote = await quoteFor({ ttl: 5 })
    await world.toControl('POST', '/time', { advance_seconds: 10 })
    await world.sendSteps(trader, quote)
    return idOf(quote)
  },
  DEPOSITED_AMOUNT_TOO_LOW_TO_FILL: async () => {
    const quote = await quoteFor()
    await deposit(orderOf(quote), 4_999_999n)
    return idOf(quote)
  },
  SLIPPAGE: async () => {
    const quote = await quoteFor({ destinationCurrency: native })
    await world.toControl('POST', '/prices', { symbol: 'ETH', price_usd: '3600' })
    await world.sendSteps(trader, quote)
    await world.end(idOf(quote))
    await world.toControl('POST', '/prices', { symbol: 'ETH', price_usd: '3500' })
    return idOf(quote)
  },
  NO_QUOTES: async () => {
    const quote = await quoteFor({ destinationCurrency: native })
    await world.toControl('POST', '/prices', { symbol: 'ETH', listed: false })
    await world.sendSteps(trader, quote)
    await world.end(idOf(quote))
    await world.toControl('POST', '/prices', { symbol: 'ETH', listed: true })
    return idOf(quote)
  },
  SOLVER_CAPACITY_EXCEEDED: async () => {
    const quote = await quoteFor()
    await world.set('/realism', { capacityUsd: 4 })
    await world.sendSteps(trader, quote)
    return idOf(quote)
  },
  SOLVER_BALANCE_TOO_LOW: async () => {
    const quote = await quoteFor()
    const inventory = { chainId: 42161, currency: usdc['42161'] }
    await world.set('/inventory', { ...inventory, limitUnits: '1000000' })
    assert.equal(
      (
        await world.quoteError({
          user: trader.address,
          originChainId: 8453,
          destinationChainId: 42161,
          originCurrency: usdc[base],
          destinationCurrency: usdc['42161'],
          amount: '5000000',
          tradeType: 'EXACT_INPUT',
        })
      ).errorCode,
      'INSUFFICIENT_LIQUIDITY',
    )
    await world.sendSteps(trader, quote)
    await world.end(idOf(quote))
    await world.set('/inventory', { ...inventory, limitUnits: null })
    return idOf(quote)
  },
  // A contract that takes no coins.
  EXECUTION_REVERTED: async () => {
    const quote = await quoteFor({ destinationCurrency: native, recipient: usdc['42161'] })
    await world.sendSteps(trader, quote)
    return idOf(quote)
  },
  UNKNOWN: async () => {
    const quote = await quoteFor({ referrer: 'debug-force-refund' })
    await world.sendSteps(trader, quote)
    return idOf(quote)
  },
  SWAP_IMPACT_TOO_HIGH: async () => {
    const quote = await quoteFor()
    await world.set('/force', { failReason: 'SWAP_IMPACT_TOO_HIGH' })
    await world.sendSteps(trader, quote)
    return idOf(quote)
  },
  ORPHANED_DEPOSIT_REFUND: async () => {
    const id: Hex = `0x${'ab'.repeat(32)}`
    await deposit(id, 3_000_000n)
    return id
  },
}

for (const [failReason, provoke] of Object.entries(provoked))
  test(`a deposit comes back for ${failReason}`, async () => {
    const before = await dollars()
    await assertRefunded(await provoke(), before, failReason)
  })

test('another token than the quoted one comes back', async () => {
  const dai = '0x50c5725949a6f0c72e6c4a641f24049a917db0cb'
  await world.fund(base, trader.address, 'DAI', '10')
  const before = await world.balance(base, dai, trader.address)
  const quote = await quoteFor()
  await deposit(orderOf(quote), 10n ** 18n, dai)
  assert.equal((await world.end(idOf(quote))).status, 'refund')
  assert.equal((await world.requestOf(idOf(quote))).data.failReason, 'ORIGIN_CURRENCY_MISMATCH')
  assert.equal(await world.balance(base, dai, trader.address), before)
})

test('a second deposit comes back as a request of its own, and the first one is filled once', async () => {
  const recipient = world.newAddress()
  const quote = await quoteFor({ recipient })
  const id = idOf(quote)
  const before = await dollars()
  const first = await deposit(orderOf(quote), 5_000_000n)
  const second = await deposit(orderOf(quote), 5_000_000n)
  assert.notEqual(first, second)
  assert.equal((await world.end(id)).status, 'success')
  const [parent, child] = await pollFor('the child', async () => {
    const listed = await world.requestsOf(`id=${id}&includeChildRequests=true`)
    return listed.length === 2 ? listed : undefined
  })
  assert.ok(parent && child)
  assert.equal((await world.end(child.id)).status, 'refund')
  assert.equal((await world.requestOf(child.id)).data.failReason, 'DOUBLE_SPEND')
  assert.equal(before - (await dollars()), 5_000_000n)
  const filled = await world.balance('42161', usdc['42161'], recipient)
  assert.equal(filled, BigInt(quote.details.currencyOut.amount))
})

test('a larger deposit is filled in proportion', async () => {
  const recipient = world.newAddress()
  const quote = await quoteFor({ recipient })
  await deposit(orderOf(quote), 10_000_000n)
  assert.equal((await world.end(idOf(quote))).status, 'success')
  const quoted = BigInt(quote.details.currencyOut.amount)
  assert.equal(await world.balance('42161', usdc['42161'], recipient), 2n * quoted)
})

test('a refund is smaller by its gas, may come in USDC, and fails when its gas costs more', async () => {
  await world.set('/realism', { sponsoredRefunds: false })
  const forced = { failReason: 'EXECUTION_REVERTED' }
  await world.set('/force', forced)
  const quote = await quoteFor()
  const before = await dollars()
  await world.sendSteps(trader, quote)
  assert.equal((await world.end(idOf(quote))).status, 'refund')
  assert.equal(before - (await dollars()), 10_000n)

  await world.set('/realism', { refundsInUsdc: 1 })
  await world.set('/force', forced)
  const coins = await quoteFor({ originCurrency: native, amount: '1000000000000000' })
  const beforeCoins = await dollars()
  await world.sendSteps(trader, coins)
  assert.equal((await world.end(idOf(coins))).status, 'refund')
  assert.equal((await dollars()) - beforeCoins, 3_489_999n)
  const { data } = await world.requestOf(idOf(coins))
  assert.equal(data.refundCurrencyData?.currency.symbol, 'USDC')

  const tiny = await quoteFor()
  await deposit(orderOf(tiny), 9_000n)
  assert.equal((await world.end(idOf(tiny))).status, 'failure')
  const { refundFailReason } = (await world.requestOf(idOf(tiny))).data
  assert.equal(refundFailReason, 'AMOUNT_TOO_LOW_TO_REFUND')
})

test('a refund that fails, or has no address, ends in a failure that keeps the deposit', async () => {
  for (const refundFailReason of [
    'SWAP_CURRENCY_NOT_ON_ORIGIN',
    'REFUND_RECIPIENT_IS_VASP',
    'NEGATIVE_NEW_AMOUNT_AFTER_FEES',
  ]) {
    const quote = await quoteFor()
    await world.set('/force', { failReason: 'NO_QUOTES', refundFailReason })
    await world.sendSteps(trader, quote)
    const ended = await world.end(idOf(quote))
    assert.deepEqual([ended.status, ended.details], ['failure', 'NO_QUOTES'])
    assert.equal((await world.requestOf(idOf(quote))).data.refundFailReason, refundFailReason)
  }
  const quote = await quoteFor({ refundTo: undefined, referrer: 'debug-force-refund' })
  const before = await dollars()
  await world.sendSteps(trader, quote)
  assert.equal((await world.end(idOf(quote))).status, 'failure')
  assert.equal(before - (await dollars()), 5_000_000n)
})

test('a deposit passes each status, and a slow fill is delayed', async () => {
  await world.set('/realism', { confirmations: 2, fillLag: 1_500, delayedAfterMs: 300 })
  const quote = await quoteFor()
  const seen = new Set<string>()
  await world.sendSteps(trader, quote)
  await pollFor('the end', async () => {
    const { status } = await world.statusOf(idOf(quote))
    seen.add(status)
    return status === 'success' ? status : undefined
  })
  const { requests } = await world.toControl<{ requests: { id: string; history: { status: string }[] }[] }>(
    'GET',
    '/solver/requests',
  )
  const history = requests.find(({ id }) => id === idOf(quote))?.history.map(({ status }) => status)
  assert.deepEqual(history, ['waiting', 'depositing', 'pending', 'delayed', 'submitted', 'success'])
  // The first ones can pass between two polls.
  for (const status of ['delayed', 'success']) assert.ok(seen.has(status), `${status} was shown`)
})

test('a deposit that is removed from its chain waits again, and is filled once when it returns', async () => {
  await world.set('/realism', { confirmations: 2 })
  const recipient = world.newAddress()
  const quote = await quoteFor({ recipient })
  await deposit(orderOf(quote), 5_000_000n)
  await pollFor('the deposit', async () =>
    (await world.statusOf(idOf(quote))).status === 'depositing' ? true : undefined,
  )
  await world.toControl('POST', `/chains/${base}/reorg`, { depth: 3, remine_after_ms: 600 })
  assert.equal((await world.end(idOf(quote))).status, 'success')
  const filled = await world.balance('42161', usdc['42161'], recipient)
  assert.equal(filled, BigInt(quote.details.currencyOut.amount))
})

test('a deposit that stays removed fails, and comes back when it returns after all', async () => {
  await world.set('/realism', { confirmations: 2, vanishedMsMax: 200 })
  const before = await dollars()
  const quote = await quoteFor()
  await deposit(orderOf(quote), 5_000_000n)
  await pollFor('the deposit', async () =>
    (await world.statusOf(idOf(quote))).status === 'depositing' ? true : undefined,
  )
  const returned = world.toControl('POST', `/chains/${base}/reorg`, { depth: 3, remine_after_ms: 1_200 })
  const failed = await world.end(idOf(quote))
  assert.deepEqual([failed.status, failed.details], ['failure', 'DEPOSIT_REORGED'])
  await returned
  await pollFor('the refund', async () =>
    (await world.statusOf(idOf(quote))).status === 'refund' ? true : undefined,
  )
  assert.equal(await dollars(), before)
})
