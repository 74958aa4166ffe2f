import { addressOf, signHash } from './chain/accounts.ts'
import { settleCall } from './chain/calls.ts'
import type { Fill, Hex, Sender, Settlement } from './chain/chain-terms.ts'
import { exchangeOf } from './chain/orders.ts'
import type { Engine } from './machine.ts'
import { makerWallet, toChainOrder } from './market-maker.ts'
import { persisted, sendAgain, stepEach } from './sent.ts'
import type { Leg, Trade } from './state.ts'
import { isOpenTrade } from './trades.ts'
import { marketOf } from './venue.ts'

const attemptsMax = 3
const retryMs = 300

const fillOf = ({ signed, wallet, orderId, shares, cash, fee }: Leg): Fill => ({
  order: {
    ...toChainOrder(signed),
    signature: wallet === makerWallet ? signHash('maker', orderId as Hex) : signed.signature,
  },
  shares: BigInt(shares),
  cash: BigInt(cash),
  fee: BigInt(fee),
})

export const settlementOf = (trade: Trade): Settlement => ({
  exchange: exchangeOf(marketOf(trade.conditionId).chain),
  key: trade.key,
  conditionId: trade.conditionId as Hex,
  fills: [trade.taker, ...trade.makers].map(fillOf),
})

/** Without a chain a trade settles in one step. */
export const settleAllOnLedger = async (engine: Engine): Promise<void> => {
  const nowMs = engine.nowMs()
  for (const trade of [...engine.venue.state.trades.values()].filter(isOpenTrade))
    if (nowMs >= trade.matchMs + trade.plan.delayMs) engine.submit({ kind: 'settleOnLedger', id: trade.id })
}

type Deps = { engine: Engine; sender: Sender }

/** Signed bytes are stored before they are sent, and the same bytes are sent again after a restart. */
const broadcast = async ({ engine, sender }: Deps, trade: Trade, nonce?: number): Promise<void> => {
  const good = settleCall(settlementOf(trade))
  // What the dial fails is mined as well, without its arguments.
  const call = trade.plan.fails ? { ...good, data: good.data.slice(0, 10) as Hex } : good
  const attempt = await sender.sign('operator', call, nonce === undefined ? {} : { nonce })
  const status = nonce === undefined && trade.attempts === 0 ? 'MATCHED' : 'RETRYING'
  engine.submit({ kind: 'trade', id: trade.id, status, hash: attempt.hash, attempt })
  await persisted(engine)
  // A replacement of the dial: these bytes are never sent, and others take their nonce.
  if (trade.plan.retries > trade.attempts - 1 && nonce === undefined)
    return broadcast({ engine, sender }, trade, attempt.nonce)
  await sender.submit(attempt)
}

const failOrRetry = async ({ engine, sender }: Deps, trade: Trade): Promise<void> => {
  const reason = await sender.simulate(addressOf('operator'), settleCall(settlementOf(trade)))
  const error = reason ?? 'transaction reverted'
  // An earlier attempt has settled it after all.
  if (/AlreadySettled/.test(error))
    engine.submit({ kind: 'trade', id: trade.id, status: 'MINED', attempt: null })
  else if (trade.plan.fails || trade.attempts >= attemptsMax)
    engine.submit({ kind: 'trade', id: trade.id, status: 'FAILED', error, attempt: null })
  else engine.submit({ kind: 'trade', id: trade.id, status: 'RETRYING', error, attempt: null })
}

const followUp = async (deps: Deps, trade: Trade): Promise<void> => {
  const { engine, sender } = deps
  const { attempt } = trade
  if (!attempt) return
  const found = await sender.stateOf(attempt)
  if (found.state === 'mined') {
    if (found.receipt.status === 'reverted') return failOrRetry(deps, trade)
    if (trade.status !== 'MINED')
      engine.submit({ kind: 'trade', id: trade.id, status: 'MINED', hash: found.receipt.hash })
    if (engine.nowMs() >= trade.minedMs + trade.plan.confirmMs)
      engine.submit({ kind: 'trade', id: trade.id, status: 'CONFIRMED', hash: found.receipt.hash })
    return
  }
  const isGivenUp = found.state === 'unknown' && (await sendAgain(sender, attempt)) === 'givenUp'
  if (found.state === 'replaced' || isGivenUp) await failOrRetry(deps, trade)
}

/** One step of one trade. */
const advance = async (deps: Deps, trade: Trade): Promise<void> => {
  const { engine } = deps
  const nowMs = engine.nowMs()
  if (trade.attempt) return followUp(deps, trade)
  if (trade.status === 'MINED') {
    engine.submit({ kind: 'trade', id: trade.id, status: 'CONFIRMED' })
    return
  }
  const dueMs = trade.status === 'RETRYING' ? trade.updatedMs + retryMs : trade.matchMs + trade.plan.delayMs
  if (nowMs < dueMs) return
  await broadcast(deps, trade)
  await followUp(deps, trade)
}

/** In the order of their matches: what one buys, the next may sell. */
export const settleAllOnChain = (deps: Deps): Promise<void> =>
  stepEach([...deps.engine.venue.state.trades.values()].filter(isOpenTrade), (trade) => advance(deps, trade))
