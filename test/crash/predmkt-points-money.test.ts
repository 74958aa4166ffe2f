/** kill -9 at the boundaries of money that moves to and from the prediction market. */
import assert from 'node:assert/strict'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import {
  buyTerms,
  executed,
  type Market,
  micros,
  moveOutcomeShares,
  outcomeOf,
  statusOf,
} from '../journeys/predmkt-calls.ts'
import type { Person } from '../journeys/users.ts'
import { base, polygon } from '../journeys/world.ts'
import { afterStep, type Case, killInCases, type PredmktPoints } from './predmkt-points.ts'

const onChain = [/^db:task_step:before/, /^net:polygon:after/]
const usdcOn = ({ world, person }: PredmktPoints, chain: typeof base | typeof polygon) =>
  world.balance(chain, person.evm, world.manifest.contracts[chain]!.usdc)

const fund: Case = {
  title: 'funding',
  shortPoint: 'db:task_step:before',
  needed: onChain,
  async run(points, attempt) {
    const { at } = attempt
    const was = await points.held()
    await points.request(attempt, '/predmkt/fund-safe', { amount_usd: '5' })
    const is = await points.held()
    assert.deepEqual([is.pusd - was.pusd, was.usdc - is.usdc], [5_000_000n, 5_000_000n], at)
  },
}

const fundBySwap: Case = {
  title: 'funding from another chain',
  shortPoint: 'db:task_step:before@3',
  needed: onChain,
  pointsMax: 6,
  async run(points, attempt) {
    const { at } = attempt
    await points.world.fund(base, points.person.evm, 'USDC', '6')
    const [was, onBase] = [await points.held(), await usdcOn(points, base)]
    const body = { amount_usd: '6', source_chain_id: base }
    const { result } = await points.request(attempt, '/predmkt/fund-safe', body)
    const is = await points.held()
    assert.equal(onBase - (await usdcOn(points, base)), 6_000_000n, at)
    assert.deepEqual([is.pusd - was.pusd, is.usdc], [micros(result.amount_usd!), was.usdc], at)
  },
}

const wrap: Case = {
  title: 'wrapping in the wallet',
  shortPoint: 'net:polymarket:after@2',
  needed: afterStep,
  async run(points, attempt) {
    const { at } = attempt
    await points.venue('POST', '/credit', { wallet: points.wallet, token: 'usdce', amount: '3' })
    const was = await points.held()
    const nonce = await points.relayNonce(points.person.evm)
    const source = { source_wallet: 'deposit_wallet', source_token_address: contracts.usdce }
    await points.request(attempt, '/predmkt/fund-safe', { wrap_only: true, amount_usd: '3', ...source })
    assert.equal((await points.held()).pusd - was.pusd, 3_000_000n, at)
    assert.equal(await points.relayNonce(points.person.evm), nonce + 1n, `${at}: one batch`)
  },
}

/** Somebody with many shares of two markets that have won, one of each protocol. */
let winner: Promise<{ wallet: string; markets: Market[] }> | undefined
async function openWinner(points: PredmktPoints) {
  const trader: Person = await points.newTrader('400')
  const markets = [
    await points.marketAt('fed-cuts-rates-in-december'),
    await points.marketAt('recession-declared-next-year'),
  ]
  for (const market of markets) {
    await executed(trader, '/predmkt/order', buyTerms(market, '180'))
    await points.venue('POST', '/resolve', { market: market.slug, outcome: 'yes' })
  }
  return { wallet: (await statusOf(trader)).safe_address, markets }
}

let redemptions = 0
const redeem: Case = {
  title: 'redemption',
  shortPoint: 'net:polymarket:after@3',
  needed: afterStep,
  async run(points, attempt) {
    const { at } = attempt
    winner ??= openWinner(points)
    const { wallet, markets } = await winner
    const market = markets[redemptions++ % markets.length]!
    const move = { from: wallet, to: points.wallet, market, outcomeId: outcomeOf(market), units: 2_000_000n }
    await moveOutcomeShares(points.world, move)
    const record = async () => {
      const { rows } = await points.app.admin.query<{ shares: string }>(
        'select coalesce(sum(shares), 0) as shares from prediction_redemption where market_id = $1',
        [market.condition_id],
      )
      return BigInt(rows[0]!.shares)
    }
    const [was, nonce, shares] = [
      await points.held(),
      await points.relayNonce(points.person.evm),
      await record(),
    ]
    const body = { condition_id: market.condition_id }
    const { result } = await points.request(attempt, '/predmkt/redeem', body)
    assert.equal(result.payout_usd, '2', at)
    assert.equal((await points.held()).pusd - was.pusd, 2_000_000n, at)
    assert.equal(await points.relayNonce(points.person.evm), nonce + 1n, `${at}: one batch`)
    assert.equal((await record()) - shares, 2_000_000n, at)
  },
}

const withdraw: Case = {
  title: 'withdrawal',
  shortPoint: 'net:polymarket:after@2',
  needed: [...afterStep, /^net:polygon:after/],
  async run(points, attempt) {
    const { at } = attempt
    const was = await points.held()
    const nonce = await points.relayNonce(points.person.evm)
    await points.request(attempt, '/predmkt/withdraw', { amount_usdc: '2' })
    const is = await points.held()
    assert.deepEqual([was.pusd - is.pusd, is.usdc - was.usdc], [2_000_000n, 2_000_000n], at)
    assert.equal(await points.relayNonce(points.person.evm), nonce + 1n, `${at}: one transfer`)
  },
}

const withdrawCash: Case = {
  title: 'withdrawal that is not unwrapped',
  shortPoint: 'net:polymarket:after@2',
  needed: afterStep,
  async run(points, attempt) {
    const { at } = attempt
    const ownCash = () => points.world.balance(polygon, points.person.evm, contracts.pusd)
    const [was, own] = [await points.held(), await ownCash()]
    await points.request(attempt, '/predmkt/withdraw', { amount_usdc: '2', token: 'pusd' })
    const is = await points.held()
    assert.deepEqual([was.pusd - is.pusd, (await ownCash()) - own], [2_000_000n, 2_000_000n], at)
  },
}

const withdrawOnward: Case = {
  title: 'withdrawal to another chain',
  shortPoint: 'db:task_step:before@5',
  needed: [...afterStep, /^net:polygon:after/],
  pointsMax: 8,
  async run(points, attempt) {
    const { at } = attempt
    const [was, onBase] = [await points.held(), await usdcOn(points, base)]
    const body = { amount_usdc: '6', destination_chain_id: base }
    const { result } = await points.request(attempt, '/predmkt/withdraw', body)
    const is = await points.held()
    assert.deepEqual([was.pusd - is.pusd, is.usdc], [6_000_000n, was.usdc], at)
    assert.equal((await usdcOn(points, base)) - onBase, BigInt(result.amount!), at)
  },
}

killInCases('money at the prediction market', [
  fund,
  fundBySwap,
  wrap,
  redeem,
  withdraw,
  withdrawCash,
  withdrawOnward,
])
