/**
 * P28: the local prediction market: what its contracts add to the first start of Polygon, how long its first request
 * waits, and its resident memory at rest and after every market has traded.
 */
import { Chain, ClobClient, OrderType, Side } from '@polymarket/clob-client-v2'
import { contracts } from '#world/polymarket/chain/addresses.ts'
import { placeContracts } from '#world/polymarket/chain/place.ts'
import { openNode } from '../world/conformance/prediction/polygon.ts'
import { walletOf } from '../world/conformance/prediction/prediction.ts'
import { startPredictionWorld } from '../world/conformance/prediction/prediction-world.ts'
import { eventually } from '../world/conformance/venue/venue.ts'
import { report } from './support/measure.ts'

const placements = 5
const ordersPerMarket = 20
const traderNumber = 901
const mib = (bytes: number) => bytes / 1_048_576

const placedMs: number[] = []
{
  await using node = await openNode()
  for (let run = 0; run < placements; run++) {
    await node.rpc.call('anvil_setCode', [contracts.pusd, '0x'])
    const startedMs = performance.now()
    await placeContracts(node.rpc)
    placedMs.push(performance.now() - startedMs)
  }
}

await using cleanup = new AsyncDisposableStack()
const market = await startPredictionWorld()
cleanup.defer(() => market.stop())
const { clob } = market.world.urls.polymarket
const startedMs = performance.now()
await (await fetch(`${clob}/time`)).json()
const firstAnswerSeconds = (performance.now() - startedMs) / 1_000
const residentMib = async () =>
  mib((await market.control<{ residentBytes: number }>('GET', '/usage')).residentBytes)
const restMib = await residentMib()

type Listed = { tokens: [string, string]; protocol: 'v1' | 'v2' }
const listed = await market.control<Listed[]>('GET', '/markets')
const address = await market.account(traderNumber, '100000')
const options = { host: clob, chain: Chain.POLYGON, signer: walletOf(traderNumber), throwOnError: true }
const creds = await new ClobClient(options).createOrDeriveApiKey()
const client = new ClobClient({ ...options, creds })
const buy = async ({ protocol }: Listed, tokenID: string) => {
  if (protocol === 'v1') return client.createAndPostOrder({ tokenID, price: 0.99, size: 10, side: Side.BUY })
  const amounts = { makerAmount: '9900000', takerAmount: '10000000' }
  const order = await client.createExchangeV3OrderFromAmounts({ tokenID, side: Side.BUY, ...amounts })
  return client.postOrder(order as never, OrderType.GTC)
}
for (const each of listed)
  for (let order = 0; order < ordersPerMarket; order++) await buy(each, each.tokens[order % 2]!)
const { trades } = await eventually('all trades are settled', async () => {
  const found = await market.effects(address)
  return found.openTrades === 0 ? found : undefined
})
const tradedMib = await residentMib()

report({
  id: 'P28',
  name: 'resident memory of the prediction market at rest',
  goal: '<= 150 MiB',
  unit: 'MiB',
  ratios: [restMib],
  met: (value) => value <= 150,
})
report({
  id: 'P28a',
  name: 'resident memory of the prediction market after its markets have traded',
  goal: '<= 220 MiB',
  unit: 'MiB',
  ratios: [tradedMib],
  met: (value) => value <= 220,
  annex: { markets: listed.length, trades: trades.length },
})
report({
  id: 'P28b',
  name: 'contracts of the prediction market on a new chain',
  goal: '<= 300 ms',
  unit: 'ms',
  ratios: placedMs,
  met: (value) => value <= 300,
})
report({
  id: 'P28c',
  name: 'first request to the prediction market, which starts it',
  goal: '<= 5 s',
  unit: 's',
  ratios: [firstAnswerSeconds],
  met: (value) => value <= 5,
})
