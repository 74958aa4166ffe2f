import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import { sameAddress } from '#kernel/money/chains.ts'
import {
  type Fields,
  isAddress,
  isUnits,
  parseText,
  secondsOf,
} from '#kernel/money/provider-answer-reader.ts'
import type {
  ProposedRoute,
  RouteCall,
  RouteFee,
  RouteRequest,
  RouteSteps,
  SolanaInstruction,
  TokenOnChain,
} from '#kernel/money/swap-provider.ts'
import { isRecord } from '#kernel/wire/json.ts'
import {
  addressOf,
  assertMinimum,
  bpsOf,
  changed,
  fieldsOf,
  hexOf,
  listOf,
  providerName,
  requestIdOf,
  unitsOf,
} from './answer-reader.ts'
import type { ForeignNames } from './chain-and-currency-names.ts'

/** Reads the answer to a quote, and refuses what contradicts the request; the swap checks targets and calldata. */

const stepsMax = 8
const itemsMax = 4
const callBytesMax = 16 * 1024
const instructionsMax = 32
const accountsMax = 64
const tablesMax = 8
const instructionBytesMax = 1_232

type Reading = { request: RouteRequest; names: ForeignNames; now: Date }

export function routeOf(body: unknown, reading: Reading): ProposedRoute {
  const { request, now } = reading
  const answer = fieldsOf(body, 'quote')
  const details = fieldsOf(answer.details, 'details')
  const amountInUnits = amountAt(details.currencyIn, request.origin, reading)
  if (amountInUnits !== request.amountInUnits) throw changed('a quote for another amount')
  const out = fieldsOf(details.currencyOut, 'output')
  const amountOutUnits = amountAt(out, request.destination, reading)
  const amountOutMinUnits = unitsOf(out.minimumAmount, 'minimum')
  assertMinimum(request, amountOutUnits, amountOutMinUnits)
  assertParties(details, reading)
  const { steps, providerRequestId } = stepsOf(answer.steps, reading)
  const { origin, destination, recipient } = request
  const sameChain = origin.chainId === destination.chainId
  const settledBy = sameChain && steps.family === 'evm' ? 'receipt' : 'status'
  if (settledBy === 'status') assertPayment(answer.protocol, reading)
  return {
    provider: providerName,
    providerRequestId,
    depositId: orderIdOf(answer.protocol) ?? providerRequestId,
    origin,
    destination,
    recipient,
    amountInUnits,
    amountOutUnits,
    amountOutMinUnits,
    fees: feesOf(answer.fees, reading),
    legs: [{ tool: toolOf(details), origin, destination, amountInUnits, amountOutUnits }],
    priceImpactBps: -bpsOf(fieldsOf(details.totalImpact ?? {}, 'impact').percent),
    etaSeconds: secondsOf(details.timeEstimate),
    expiresAt: later(now, request.ttlSeconds * 1_000),
    steps,
    settledBy,
  }
}

/**
 * Returns the id of Relay's order for the quote, which the deposit of the user carries. Returns undefined if Relay made no
 * order for the quote.
 */
function orderIdOf(protocol: unknown): string | undefined {
  const order = isRecord(protocol) ? (isRecord(protocol.v2) ? protocol.v2 : protocol) : {}
  return order.orderId === undefined || order.orderId === null ? undefined : requestIdOf(order.orderId)
}

/** Throws if the quote's order is for another payment, because such a deposit would at best be refunded. */
function assertPayment(protocol: unknown, { request, names }: Reading): void {
  const order = isRecord(protocol) && isRecord(protocol.v2) ? protocol.v2 : {}
  if (!isRecord(order.paymentDetails)) return
  const { currency, amount } = order.paymentDetails
  const { chainId, token } = request.origin
  const row = names.rowOf(chainId)
  const paid = typeof currency === 'string' ? names.token(chainId, currency) : undefined
  if (row === undefined || paid === undefined || !sameAddress(row, paid, token))
    throw changed('an order for another token')
  if (unitsOf(amount, 'amount of the order') !== request.amountInUnits)
    throw changed('an order for another amount')
}

/** Returns the amount of a currency, which must be the requested one. */
function amountAt(value: unknown, expected: TokenOnChain, { names }: Reading): bigint {
  const { currency, amount } = fieldsOf(value, 'amount')
  const { chainId, address } = fieldsOf(currency, 'currency')
  const row = names.rowOf(expected.chainId)
  const token = typeof address === 'string' ? names.token(expected.chainId, address) : undefined
  const isExpected =
    row !== undefined &&
    token !== undefined &&
    names.publicId(chainId) === expected.chainId &&
    sameAddress(row, token, expected.token)
  if (!isExpected) throw changed('a quote for another token')
  return unitsOf(amount, 'amount')
}

function assertParties({ sender, recipient }: Fields, { request, names }: Reading): void {
  const isAt = (chainId: string, given: unknown, expected: string) => {
    const row = names.rowOf(chainId)
    return row !== undefined && typeof given === 'string' && sameAddress(row, given, expected)
  }
  if (!isAt(request.origin.chainId, sender, request.user)) throw changed('a quote of another sender')
  if (!isAt(request.destination.chainId, recipient, request.recipient))
    throw changed('a quote for another recipient')
}

function toolOf({ route }: Fields): string {
  const { origin } = fieldsOf(route ?? {}, 'route')
  return parseText(fieldsOf(origin ?? {}, 'route').router) ?? providerName
}

/** Returns the relayer's gas and service fee. They are shown and decide nothing, so unreadable ones are left out. */
function feesOf(value: unknown, { names }: Reading): RouteFee[] {
  const { relayer, relayerGas } = isRecord(value) ? value : {}
  const total = feeOf(relayer, names)
  if (!total) return []
  const gas = feeOf(relayerGas, names)
  const isPart =
    gas !== undefined &&
    gas.chainId === total.chainId &&
    gas.token.toLowerCase() === total.token.toLowerCase() &&
    gas.amountUnits <= total.amountUnits
  const gasUnits = isPart ? gas.amountUnits : 0n
  const fee = (type: RouteFee['type'], amountUnits: bigint): RouteFee => ({
    ...total,
    type,
    amountUnits,
    isIncluded: true,
  })
  return [fee('gas', gasUnits), fee('bridge', total.amountUnits - gasUnits)].filter(
    ({ amountUnits }) => amountUnits > 0n,
  )
}

type ReadFee = TokenOnChain & { amountUnits: bigint }

/** Reads a fee in its own token, and returns undefined for one on a chain that is not served. */
function feeOf(value: unknown, names: ForeignNames): ReadFee | undefined {
  if (!isRecord(value) || !isRecord(value.currency)) return undefined
  const { amount, currency } = value
  const chainId = names.publicId(currency.chainId)
  const row = chainId === undefined ? undefined : names.rowOf(chainId)
  if (!row || !isAddress(currency.address, row.family) || !isUnits(amount)) return undefined
  return { chainId: row.id, token: names.token(row.id, currency.address)!, amountUnits: BigInt(amount) }
}

type ReadSteps = { steps: RouteSteps; providerRequestId: string }

function stepsOf(value: unknown, reading: Reading): ReadSteps {
  const all = listOf(value, 'steps', stepsMax).map((each) => fieldsOf(each, 'step'))
  // Relay's guide says to skip steps without items, whatever they are.
  const steps = all.filter(
    ({ items }) => items !== undefined && !(Array.isArray(items) && items.length === 0),
  )
  const named = steps.filter(({ id, requestId }) => !(isApproval(id) && requestId === undefined))
  const ids = new Set(named.map(({ requestId }) => requestIdOf(requestId)))
  const [providerRequestId, ...others] = ids
  if (providerRequestId === undefined || others.length > 0) throw changed('steps of several requests')
  const { chainId } = reading.request.origin
  const isEvm = reading.names.rowOf(chainId)?.family === 'evm'
  const read = isEvm ? evmStepsOf(steps, reading) : solanaStepsOf(steps)
  return { steps: { ...read, chainId } as RouteSteps, providerRequestId }
}

const itemsOf = (step: Fields): Fields[] =>
  listOf(step.items, 'items', itemsMax).map((item) =>
    fieldsOf(fieldsOf(item, 'item').data, 'data of an item'),
  )

/** Whether a step is an approval, for which Relay's guide has two words. */
const isApproval = (id: unknown): boolean => id === 'approve' || id === 'approval'

function kindOf({ id, kind }: Fields): RouteCall['kind'] {
  if (kind === 'transaction' && isApproval(id)) return 'approve'
  if (kind === 'transaction' && (id === 'swap' || id === 'deposit')) return id
  // A step that asks for a signature for the solver's own contracts is refused, because custody cannot read it.
  throw new Fault('no_route', 'The route needs a kind of step that is not supported', {
    extras: { upstream: providerName, reason: 'unsupported_step' },
  })
}

function evmStepsOf(steps: readonly Fields[], { request, names }: Reading) {
  let gas: bigint | null = null
  const calls = steps.flatMap((step): RouteCall[] => {
    const kind = kindOf(step)
    return itemsOf(step).map((data) => {
      if (names.publicId(data.chainId) !== request.origin.chainId) throw changed('a call on another chain')
      const from = addressOf(data.from, 'sender')
      if (from.toLowerCase() !== request.user.toLowerCase()) throw changed('a call of another sender')
      if (data.gas !== undefined && data.gas !== null) gas = gasOf(data.gas, gas)
      return {
        kind,
        to: addressOf(data.to, 'target'),
        value: unitsOf(data.value, 'value'),
        data: hexOf(data.data, 'calldata', { bytesMax: callBytesMax, prefix: '0x' }),
      }
    })
  })
  return { family: 'evm' as const, calls, gas: gas as bigint | null }
}

const gasOf = (value: unknown, known: bigint | null): bigint =>
  unitsOf(typeof value === 'number' ? String(value) : value, 'gas') + (known ?? 0n)

function solanaStepsOf(steps: readonly Fields[]) {
  const [data, ...others] = steps.flatMap((step) => {
    kindOf(step)
    return itemsOf(step)
  })
  // All instructions on Solana must fit into one transaction, which is signed once.
  if (!data || others.length > 0) throw changed('not exactly one transaction')
  const instructions = listOf(data.instructions, 'instructions', instructionsMax).map(instructionOf)
  const tables = listOf(data.addressLookupTableAddresses ?? [], 'lookup tables', tablesMax)
  const lookupTables = tables.map((each) => addressOf(each, 'lookup table', 'solana'))
  return { family: 'solana' as const, instructions, lookupTables }
}

function instructionOf(value: unknown): SolanaInstruction {
  const { programId, keys, data } = fieldsOf(value, 'instruction')
  return {
    programId: addressOf(programId, 'program', 'solana'),
    accounts: listOf(keys, 'accounts', accountsMax).map((key) => {
      const { pubkey, isSigner, isWritable } = fieldsOf(key, 'account')
      if (typeof isSigner !== 'boolean' || typeof isWritable !== 'boolean')
        throw changed('an account without its rights')
      return { address: addressOf(pubkey, 'account', 'solana'), isSigner, isWritable }
    }),
    data: hexOf(data, 'instruction', { bytesMax: instructionBytesMax, prefix: '' }),
  }
}
