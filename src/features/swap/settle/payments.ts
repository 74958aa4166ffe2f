import { claimArrival, unclaimed } from '#engines/chain-arrivals/claims.ts'
import type { SwapDeps } from '#features/swap/deps.ts'
import { refundFloorUnits } from '#features/swap/route/loss.ts'
import type { SwapTask, SwapTaskData } from '#features/swap/task-data.ts'
import { chainNotServed } from '#kernel/contract/token-ref.ts'
import { balanceChange, sumChanges } from '#kernel/money/balance-changes.ts'
import { type Chain, sameAddress, type Token } from '#kernel/money/chains.ts'
import { fullBps, mulDiv } from '#kernel/money/money.ts'
import type { ProviderStatus, ProviderTx } from '#kernel/money/swap-provider.ts'
import type { Tx } from '#kernel/task/task.ts'
import type { JsonObject } from '#kernel/wire/json.ts'
import { announcedOn } from './announced-transactions.ts'
import { type Arrival, type Begin, type Gain, isEarlier, paymentsOf, type Range } from './arrivals.ts'

export type Found = { arrival: Arrival; gain: Gain; txHash: string }
export type Place = {
  chain: Chain
  owner: string
  /** The paid token; if it is on no list, only its address is known. */
  token: Token
  task: SwapTask
  /** Whether the payment is in the token that the swap bought, on the destination chain. */
  isFill: boolean
}
export type Payment = { place: Place; found: Found[]; units: bigint }
/** All final payments of every announced transaction that no other swap has counted. */
export type Paid = {
  fill: Payment | undefined
  /** The payments that came back to the origin chain, or were made in another token. */
  returns: Payment[]
  /** Whether a further payment is on a chain but not final yet. */
  isPending: boolean
}
/** A search for payments; with `late` the swap has ended, and payments that it has counted are not found again. */
export type PaymentSearch = {
  status: ProviderStatus
  announced: readonly ProviderTx[]
  claims: 'own' | 'late'
}

type Wanted = { token: Token; isFill: boolean; range: Range }
type Side = {
  chain: Chain
  owner: string
  wanted: readonly Wanted[]
  /** The most coins to attribute to the swap where only balances show a gain; undefined if coins cannot pay it. */
  coinMax: bigint | undefined
}

export async function findPayments(deps: SwapDeps, task: SwapTask, search: PaymentSearch): Promise<Paid> {
  const { origin, destination, amount_out_min: minimum } = task.data
  const isDirect = origin.chain_id === destination.chain_id
  const paid = await paymentsAt(deps, task, search, destinationSide(deps, task.data, search.status))
  const isWhole = paid.fill !== undefined && paid.fill.units >= BigInt(minimum)
  // If the provider named one transaction and that has paid everything, there is no other payment to look for.
  const isOnly = new Set(search.announced.map(({ txHash }) => txHash)).size === 1
  if (isDirect || (isWhole && isOnly && search.status.state === 'success')) return paid
  const back = await paymentsAt(deps, task, search, originSide(deps, task.data, search.status))
  return asRefund(search.status, {
    fill: paid.fill,
    returns: [...back.returns, ...paid.returns],
    isPending: paid.isPending || back.isPending,
  })
}

/** Turns a fill into a return if the provider names it as a refund, even in the bought token on its chain. */
function asRefund({ state, destinationTxs }: ProviderStatus, { fill, returns, isPending }: Paid): Paid {
  const isNamed = ({ txHash }: Found) => destinationTxs.some((each) => each.txHash === txHash)
  if (state !== 'refunded' || returns.length > 0 || !fill?.found.every(isNamed))
    return { fill, returns, isPending }
  return { fill: undefined, returns: [{ ...fill, place: { ...fill.place, isFill: false } }], isPending }
}

function destinationSide(deps: SwapDeps, data: SwapTaskData, status: ProviderStatus): Side {
  const { chain_id: chainId, token, account: owner } = data.destination
  const isDirect = chainId === data.origin.chain_id
  const chain = chainOf(deps, chainId)
  const isNative = sameAddress(chain, token.address, chain.native.address)
  const fill = {
    token,
    isFill: true,
    range: { minUnits: BigInt(data.amount_out_min), maxUnits: fillMax(data) },
  }
  const returned = isDirect ? returnTokens(deps, data, status) : otherTokens(deps, data, status)
  const others = returned.filter((each) => !sameAddress(chain, each.token.address, token.address))
  const isCoinReturned = others.some((each) => isExpected(chain, each.token, data, status))
  const coinMax = isNative ? betterFillMax(data) : isCoinReturned ? BigInt(data.amount_in) : undefined
  return { chain, owner, wanted: [fill, ...others], coinMax }
}

function originSide(deps: SwapDeps, data: SwapTaskData, status: ProviderStatus): Side {
  const { chain_id: chainId, account: owner } = data.origin
  const chain = chainOf(deps, chainId)
  const wanted = returnTokens(deps, data, status)
  const isCoin = wanted.some(({ token }) => isExpected(chain, token, data, status))
  return { chain, owner, wanted, coinMax: isCoin ? BigInt(data.amount_in) : undefined }
}

/** Whether the token is the native coin, and the deposit was made in it or the provider names it. */
function isExpected(
  chain: Chain,
  token: Token,
  { origin }: SwapTaskData,
  { refund, paidToken }: ProviderStatus,
): boolean {
  if (!sameAddress(chain, token.address, chain.native.address)) return false
  const named = [
    chain.id === origin.chain_id && !refund ? origin.token.address : undefined,
    refund?.chainId === chain.id ? refund.token : undefined,
    chain.id === origin.chain_id ? undefined : paidToken,
  ]
  return named.some((each) => typeof each === 'string' && sameAddress(chain, each, token.address))
}

/** A range that no amount fits, so that only a payment that is alone in its transaction is attributed to the swap. */
const onlyAlone: Range = { minUnits: 0n, maxUnits: -1n }

/**
 * Returns the tokens that can come back on the origin chain; after a success, only the deposited and the
 * named ones.
 */
function returnTokens(
  deps: SwapDeps,
  data: SwapTaskData,
  { refund, paidToken, state }: ProviderStatus,
): Wanted[] {
  const { chain_id: chainId, token } = data.origin
  const chain = chainOf(deps, chainId)
  const known = knownOn(chain, token)
  const isDirect = chainId === data.destination.chain_id
  const isPaid = ({ address }: Token) =>
    isDirect && paidToken !== null && sameAddress(chain, address, paidToken)
  const named = refund?.chainId === chainId ? [tokenAt(chain, token, refund.token)] : []
  const others = state === 'success' ? [token, ...known.filter(isPaid)] : known
  return distinct(chain, [...named, ...others]).map((each) => {
    const isSold = sameAddress(chain, each.address, token.address)
    const range = { minUnits: refundFloorUnits(data), maxUnits: BigInt(data.amount_in) }
    return { token: each, isFill: false, range: isSold ? range : onlyAlone }
  })
}

/**
 * Returns the other tokens that can be paid on the destination chain. Anybody can send unlisted tokens, so
 * those count only if the provider names them; listed ones count also once it has refunded or failed.
 */
function otherTokens(deps: SwapDeps, data: SwapTaskData, status: ProviderStatus): Wanted[] {
  const { refund, paidToken, state } = status
  const { chain_id: chainId, token } = data.destination
  const chain = chainOf(deps, chainId)
  const known = knownOn(chain, token)
  const named = refund?.chainId === chainId ? [tokenAt(chain, token, refund.token)] : []
  const paid = known.filter(({ address }) => paidToken !== null && sameAddress(chain, address, paidToken))
  const tokens = distinct(chain, [...named, ...paid, ...(state === 'success' ? [] : known)])
  return tokens.map((each) => ({ token: each, isFill: false, range: onlyAlone }))
}

const distinct = (chain: Chain, tokens: readonly Token[]): Token[] =>
  tokens.filter(
    (each, at) => tokens.findIndex(({ address }) => sameAddress(chain, address, each.address)) === at,
  )

type Seen = { arrival: Arrival; txHash: string }

async function paymentsAt(
  { arrivals, db }: SwapDeps,
  task: SwapTask,
  { announced, claims }: PaymentSearch,
  { chain, owner, wanted, coinMax }: Side,
): Promise<Paid> {
  const begin = beginOn(chain, task)
  const token = coinMax === undefined ? wanted[0]!.token.address : chain.native.address
  const unitsMax = coinMax ?? BigInt(task.data.amount_in)
  const seen: Seen[] = []
  let isPending = false
  for (const { chainId, txHash } of announcedOn(chain, announced)) {
    const arrival = await arrivals.of({ chainId, owner, token, unitsMax, txHash })
    if (!arrival || isEarlier(arrival, begin)) continue
    if (arrival.isFinal) seen.push({ arrival, txHash })
    else isPending ||= wanted.some((each) => gainsIn(chain, arrival, each.token).length > 0)
  }
  const all = seen.flatMap(({ arrival, txHash }) => arrival.gained.map((gain) => ({ ...gain, txHash })))
  const claimant = claims === 'late' ? '' : task.id
  const free = await unclaimed(db, { chain, account: owner, claimant }, all)
  const payments = wanted.flatMap((each): Payment[] => {
    const found = seen.flatMap((one) => foundIn(chain, one, free, each))
    if (found.length === 0) return []
    const units = found.reduce((sum, { gain }) => sum + gain.amountUnits, 0n)
    return [{ place: { chain, owner, token: each.token, task, isFill: each.isFill }, found, units }]
  })
  return {
    fill: payments.find(({ place }) => place.isFill),
    returns: payments.filter(({ place }) => !place.isFill),
    isPending,
  }
}

function beginOn({ id, family }: Chain, { createdAt, data }: SwapTask): Begin {
  const headSeconds = data.head_seconds?.[id]
  const headAt = headSeconds === undefined ? undefined : new Date(headSeconds * 1_000)
  return { createdAt, family, head: data.heads?.[id], headAt }
}

const gainsIn = (chain: Chain, { gained }: Arrival, { address }: Token): Gain[] =>
  gained.filter((each) => sameAddress(chain, each.token, address))

function foundIn(
  chain: Chain,
  { arrival, txHash }: Seen,
  free: readonly (Gain & { txHash: string })[],
  { token, range }: Wanted,
): Found[] {
  const gained = gainsIn(chain, arrival, token)
  const isFree = ({ part }: Gain) => free.some((each) => each.txHash === txHash && each.part === part)
  const chosen = paymentsOf({ gained, free: gained.filter(isFree) }, range)
  return chosen.map((gain) => ({ arrival, gain, txHash }))
}

export const allOf = ({ fill, returns }: Pick<Paid, 'fill' | 'returns'>): Payment[] => [
  ...(fill ? [fill] : []),
  ...returns,
]

export const hasPaid =
  (paid: Paid) =>
  ({ chainId, txHash }: ProviderTx): boolean =>
    allOf(paid).some(
      ({ place, found }) => place.chain.id === chainId && found.some((each) => each.txHash === txHash),
    )

/**
 * Counts the payments for their swap, so that they cannot end another one, and returns those that are new.
 * All swaps claim in the same order, so that no two of them deadlock.
 */
export async function claimPayments(tx: Tx, payments: readonly Payment[], at: Date): Promise<Payment[]> {
  const all = payments.flatMap(({ place, found }) => found.map((one) => ({ place, one })))
  const keyOf = ({ place, one }: (typeof all)[number]) => `${place.chain.id} ${one.txHash} ${one.gain.part}`
  const counted = new Set<Found>()
  for (const { place, one } of all.toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))) {
    const { chain, owner, task } = place
    const arrival = { chain, txHash: one.txHash, part: one.gain.part, account: owner }
    if (await claimArrival(tx, arrival, { claimant: task.id, at })) counted.add(one)
  }
  return payments.flatMap(({ place, found }) => {
    const fresh = found.filter((one) => counted.has(one))
    const units = fresh.reduce((sum, { gain }) => sum + gain.amountUnits, 0n)
    return fresh.length === 0 ? [] : [{ place, found: fresh, units }]
  })
}

export const quotedOut = ({ quote, amount_out_min }: SwapTaskData): bigint =>
  BigInt(String(quote.amount_out ?? amount_out_min))

/** The highest fill that is expected: as far above the quote as the minimum is below it. */
const fillMax = (data: SwapTaskData): bigint => 2n * quotedOut(data) - BigInt(data.amount_out_min)

const betterFillBps = 200n
/**
 * The most native coins that a change of the balance may attribute to the swap: a provider can pay more than a quote
 * with a tight minimum. The range still decides between payments of one transaction. Two fills in one block, which
 * balances cannot distinguish, add up to more.
 */
function betterFillMax(data: SwapTaskData): bigint {
  const better = quotedOut(data) + mulDiv(quotedOut(data), betterFillBps, fullBps)
  const max = fillMax(data)
  return better > max ? better : max
}

const knownOn = (chain: Chain, token: Token): Token[] => [token, chain.native, ...chain.tokens]

const tokenAt = (chain: Chain, token: Token, address: string): Token =>
  knownOn(chain, token).find((each) => sameAddress(chain, each.address, address)) ?? {
    symbol: '',
    name: '',
    decimals: 0,
    address,
  }

export const chainOf = ({ chains }: Pick<SwapDeps, 'chains'>, chainId: string) => {
  const chain = chains.find(({ id }) => id === chainId)
  if (!chain) throw chainNotServed(chainId)
  return chain
}

/** Adds the provider's transactions, and the balance changes that they brought, to those of the deposit. */
export function withPayments(
  { data }: Pick<SwapTask, 'data'>,
  payments: readonly Payment[],
): Pick<SwapTaskData, 'transactions' | 'balance_changes'> {
  const changes = payments.map(({ place: { chain, token }, units }) => balanceChange(chain.id, token, units))
  const shown = data.transactions ?? []
  const transactions = payments.flatMap(({ place: { chain }, found }) =>
    found.map(
      ({ txHash, arrival }): JsonObject => ({
        chain_id: chain.id,
        tx_hash: txHash,
        explorer_url: `${chain.explorerUrl}/tx/${txHash}`,
        status: 'finalized',
        block: arrival.block,
      }),
    ),
  )
  const isFirst = ({ chain_id, tx_hash }: JsonObject, at: number, all: readonly JsonObject[]) =>
    all.findIndex((each) => each.chain_id === chain_id && each.tx_hash === tx_hash) === at
  return {
    transactions: [...shown, ...transactions].filter(isFirst),
    balance_changes: sumChanges([...(data.balance_changes ?? []), ...changes]),
  }
}
