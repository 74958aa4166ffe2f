import type { Rpc } from '#world/evm/rpc.ts'
import { addressOf } from './chain/accounts.ts'
import { approvalCalls, prepareCall } from './chain/calls.ts'
import type { ChainEvent, ChainMarket, Reads, Sender, WorldMoney } from './chain/chain-terms.ts'
import { placeContracts } from './chain/place.ts'
import type { Engine } from './machine.ts'
import { markets } from './markets.ts'

/** For the venue's own maker: it buys on both sides of every market. */
const makerUnits = 1_000_000_000n * 1_000_000n

const listed = (): (ChainMarket | ChainEvent)[] => [
  ...new Set(markets.map(({ chain, chainEvent }) => chainEvent ?? chain)),
]

type Deps = { engine: Engine; rpc: Rpc; sender: Sender; reads: Reads; money: WorldMoney }

/** Lists the markets on the chain and gives the maker its money. A second run finds what the first one did. */
export const prepareChain = async ({ engine, rpc, sender, reads, money }: Deps): Promise<void> => {
  await placeContracts(rpc)
  const unprepared: (ChainMarket | ChainEvent)[] = []
  for (const each of listed()) {
    const first = 'markets' in each ? each.markets[0] : each
    if (first && !(await reads.resolution(first)).isPrepared) unprepared.push(each)
  }
  if (unprepared.length > 0) await sender.send('resolver', prepareCall(unprepared))
  const maker = addressOf('maker')
  const approvals = await reads.approvals(maker)
  for (const [index, call] of approvalCalls().entries())
    if (approvals[index]?.allowance === 0n) await sender.send('maker', call)
  if ((await reads.dollars(maker)).pusd < makerUnits / 2n) await money.mintPusd(maker, makerUnits)
  if (!engine.venue.state.chainPrepared) engine.submit({ kind: 'chainPrepared' })
}
