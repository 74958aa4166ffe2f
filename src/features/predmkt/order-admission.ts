import { Fault, invalid } from '#kernel/contract/fault.ts'
import { insufficientBalance } from '#kernel/money/insufficient-balance.ts'
import { fromUnits, usdcDecimals } from '#kernel/money/money.ts'
import type { OutcomeQuote, PredictionMarket } from '#kernel/money/prediction-views.ts'
import { type Attempt, createAdmission } from '#kernel/task/admission.ts'
import { actionTerms } from '#kernel/task/approval.ts'
import type { PlannedAction } from '#kernel/task/signer.ts'
import { type AccessCheck, type TradingAccount, tradingAccount } from './account-checks.ts'
import type { AdmissionReads } from './admission-reads.ts'
import {
  cashAccount,
  cashLedgerToken,
  cashOf,
  cashSymbol,
  moneyOf,
  sharesAccount,
  sharesLedgerToken,
  sharesOf,
} from './balances.ts'
import type { PredmktDeps } from './deps.ts'
import { assertAcknowledged } from './disclaimer.ts'
import { exitTermsOf } from './exit-request.ts'
import {
  assertOnGrid,
  cashFor,
  type OrderInput,
  type OrderTerms,
  orderTerms,
  toVenueTerms,
} from './order-request.ts'
import { type OrderTaskData, storedTerms } from './order-task.ts'
import { assertExitRoom } from './store/exit-store.ts'
import { assertOrderRoom } from './store/order-room.ts'
import { boundTrade } from './trade-prices.ts'

/** An order is refused here, before a task exists, wherever the venue would refuse it. */

export type OrderDeps = PredmktDeps & { access: AccessCheck; reads: AdmissionReads }
/** How long an order is placed, and its matches are followed before an operator looks into it. */
export const orderMs = 10 * 60_000

type OrderRequest = {
  action: PlannedAction
  terms: OrderTerms
  market: PredictionMarket
  account: TradingAccount
  /** What the order can cost at most, its fee included; 0 for a sale. */
  costUnits: bigint
  data: OrderTaskData
}

export const admitOrder = (deps: OrderDeps) =>
  createAdmission({
    policy: deps.policy,
    asksPolicy: 'on_shortage',
    check: (input: OrderInput, attempt) => checkOrder(deps, input, attempt),
    fund: (request) => (request.terms.side === 'buy' ? fundPurchase(deps, request) : fundSale(deps, request)),
    start: ({ data }, spend) => ({ first: 'sign', deadlineMs: orderMs, data, spend }),
  })

async function checkOrder(deps: OrderDeps, input: OrderInput, { userId }: Attempt): Promise<OrderRequest> {
  await assertAcknowledged(deps, userId)
  const asked = await orderTerms(deps, input, userId)
  // The account comes before anything that asks the venue.
  const account = await tradingAccount(deps, userId, deps.venue.protocolOf(asked.outcomeId))
  const market = await deps.reads.marketOf(userId, asked.outcomeId)
  if (market.isClosed || !market.acceptsOrders)
    throw new Fault('market_closed', 'The venue takes no orders for this market now')
  assertOnGrid(asked, market)
  const { countedMicros, acceptedLossBps, ...bound } = await boundTrade(deps, userId, asked)
  const terms = { ...asked, ...bound }
  if (terms.side === 'buy') await deps.access.assertMayOpen(userId, account.credentials)
  const quote = await quoteNow(deps, terms)
  const { postOnly } = terms
  const maxFeeUnits =
    quote?.maxFeeUnits ??
    (await deps.venue.highestFee(market, { terms: toVenueTerms(terms, undefined), postOnly }))
  if (terms.maxFeeUnits !== null) assertFee(terms.maxFeeUnits, maxFeeUnits)
  const costUnits = costOf(terms, maxFeeUnits)
  const countedUnits = countedMicros ?? costUnits
  const exits = exitTermsOf(input, market, asked.priceMicros ?? quote!.worstPriceMicros)
  const owner = { userId, venue: deps.venue.name }
  await assertExitRoom(deps.db, owner, exits.length)
  // One that matches at once has ended before it is in any list.
  if (isResting(terms)) await assertOrderRoom(deps.db, owner)
  const label = market.outcomes.find(({ outcomeId }) => outcomeId === terms.outcomeId)?.label ?? ''
  const amount = terms.sizeUnits === null ? `${usd(costUnits)} USD of` : `${usd(terms.sizeUnits)} shares of`
  return {
    action: {
      userId,
      ...orderFacts(deps, countedUnits),
      ...(acceptedLossBps !== undefined && { acceptedLossBps }),
      terms: actionTerms(`${terms.side === 'buy' ? 'Buy' : 'Sell'} ${amount} ${label}: ${market.question}`, {
        venue: 'Polymarket',
        asset: label,
        token: cashSymbol,
        amount: usd(terms.side === 'buy' ? costUnits : terms.sizeUnits!),
        cost: 'The fee of the venue, which the amount includes',
      }),
    },
    terms,
    market,
    account,
    costUnits,
    data: {
      wallet: account.wallet,
      terms: storedTerms(terms),
      cost_units: String(costUnits),
      counted_units: String(countedUnits),
      exits,
    },
  }
}

const usd = (units: bigint): string => fromUnits(units, usdcDecimals)

/** `countedMicros` is what the order counts to the limits of the policy, which is nothing for an exit alone. */
export const orderFacts = (
  deps: Pick<PredmktDeps, 'venue' | 'chain'>,
  countedMicros: bigint,
): Omit<PlannedAction, 'userId'> => ({
  operation: 'predmkt_order',
  chainId: deps.chain.row.id,
  tokens: [moneyOf(deps).cashToken],
  recipients: [],
  usdMicros: countedMicros,
  exit: countedMicros === 0n,
})

const isResting = ({ timeInForce }: Pick<OrderTerms, 'timeInForce'>): boolean =>
  timeInForce === 'gtc' || timeInForce === 'gtd'

/** The venue refuses smaller purchases that match at once. */
const leastPurchaseUnits = 1_000_000n

/** What the book of this moment gives; undefined for an order that names its own price and size. */
export async function quoteNow(
  { venue }: Pick<PredmktDeps, 'venue'>,
  { outcomeId, timeInForce, allInUnits, sizeUnits, priceMicros, boundMicros, side }: OrderTerms,
): Promise<OutcomeQuote | undefined> {
  if (isResting({ timeInForce })) return undefined
  const spend =
    allInUnits !== null
      ? { type: 'all_in' as const, cashUnits: allInUnits }
      : { type: side, sizeUnits: sizeUnits! }
  const quote = await venue.quote({ outcomeId, spend, worstPriceMicros: boundMicros })
  if (quote.sizeUnits === 0n)
    throw new Fault(
      'insufficient_liquidity',
      boundMicros === null
        ? 'The book has nothing that the order could match'
        : `The book has nothing at ${usd(boundMicros)} USD or less, a quarter above the price of the market; \`worst_price\` takes a worse one`,
    )
  const isBeyond =
    priceMicros !== null &&
    (side === 'buy' ? quote.worstPriceMicros > priceMicros : quote.worstPriceMicros < priceMicros)
  if (timeInForce === 'fok' && (!quote.isComplete || isBeyond))
    throw new Fault(
      'insufficient_liquidity',
      'The book does not fill the whole order within its bound; a FAK order takes a part',
    )
  if (side === 'buy' && quote.orderCashUnits < leastPurchaseUnits) throw tooSmall(quote)
  return quote
}

function tooSmall({ isComplete }: OutcomeQuote): Fault {
  const minimum = usd(leastPurchaseUnits)
  const sentence = `The venue takes purchases at market price of at least ${minimum} USD without the fee`
  return isComplete
    ? invalid('amount_usd', 'below_minimum', sentence, { minimum, unit: 'USD' })
    : new Fault('insufficient_liquidity', `${sentence}; the book has less within the bound`)
}

/** What an order can cost at most: nothing for a sale, whose shares are held. */
function costOf({ side, allInUnits, priceMicros, sizeUnits }: OrderTerms, maxFeeUnits: bigint): bigint {
  if (side === 'sell') return 0n
  return allInUnits ?? cashFor(priceMicros!, sizeUnits!, 'up') + maxFeeUnits
}

function assertFee(maxUnits: bigint, feeUnits: bigint): void {
  if (feeUnits <= maxUnits) return
  throw invalid(
    'max_fee_usd',
    'greater_than',
    `The fee can be ${usd(feeUnits)} USD where the order matches at a better price, which is more than accepted`,
    { fee_usd: usd(feeUnits) },
  )
}

async function fundPurchase(deps: OrderDeps, { action: { userId }, account, costUnits }: OrderRequest) {
  const read = () => cashOf(deps, { userId, wallet: account.wallet })
  const cash = await read()
  const token = cashLedgerToken(deps)
  if (cash.freeUnits < costUnits)
    throw insufficientBalance(
      { ...token, chainId: deps.chain.row.id },
      {
        what: 'The order',
        requiredUnits: costUnits,
        availableUnits: cash.freeUnits,
        note: 'cash is what lies in the funded wallet and no open order holds; `predmkt_fund` adds to it',
      },
    )
  const { totalUnits, version } = cash
  return {
    account: cashAccount(deps, userId),
    amountUnits: costUnits,
    token,
    seen: { totalUnits, version, reread: read },
  }
}

async function fundSale(deps: OrderDeps, { action: { userId }, account, terms, market }: OrderRequest) {
  const { outcomeId } = terms
  const sizeUnits = terms.sizeUnits!
  const read = () => sharesOf(deps, { userId, wallet: account.wallet, market, outcomeId })
  const shares = await read()
  if (shares.freeUnits < sizeUnits) throw sharesShort(sizeUnits, shares)
  const { totalUnits, version } = shares
  return {
    account: sharesAccount(deps, userId, outcomeId),
    amountUnits: sizeUnits,
    token: sharesLedgerToken(outcomeId),
    seen: { totalUnits, version, reread: read },
  }
}

function sharesShort(
  sizeUnits: bigint,
  { freeUnits, unsettledUnits }: { freeUnits: bigint; unsettledUnits: bigint },
): Fault {
  const free = fromUnits(freeUnits, usdcDecimals)
  if (freeUnits + unsettledUnits >= sizeUnits)
    return new Fault(
      'shares_not_settled',
      `Only ${free} shares are settled and free; the trades of others can still fail`,
      { extras: { settled: free, unsettled: fromUnits(unsettledUnits, usdcDecimals) } },
    )
  if (freeUnits === 0n) return new Fault('no_position', 'There are no free shares of this outcome to sell')
  return insufficientBalance(sharesLedgerToken('shares'), {
    what: 'The sale',
    requiredUnits: sizeUnits,
    availableUnits: freeUnits,
  })
}
