import { later } from '#kernel/clock.ts'
import { Fault } from '#kernel/contract/fault.ts'
import type { Chain } from '#kernel/money/chains.ts'
import { fullBps } from '#kernel/money/money.ts'
import { type Fields, isAddress, parseText, secondsOf } from '#kernel/money/provider-answer-reader.ts'
import type { ProposedRoute, RouteFee, RouteRequest } from '#kernel/money/swap-provider.ts'
import {
  addressOf,
  assertMinimum,
  changed,
  fieldsOf,
  hashOf,
  hexOf,
  providerName,
  quantityOf,
  unitsOf,
} from './answer-reader.ts'

/** Translates a quote of LI.FI. Before signing, the gateway and custody check the proposed calls again. */

export const nativeName = '0x0000000000000000000000000000000000000000'
type Row = Pick<Chain, 'id' | 'family' | 'native'>
type Reading = { request: RouteRequest; rows: ReadonlyMap<string, Row>; now: Date }

const callBytesMax = 16 * 1024
const feesMax = 16
const same = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

export const currencyOf = ({ native }: Row, token: string): string =>
  same(token, native.address) ? nativeName : token

export function routeOf(body: unknown, reading: Reading): ProposedRoute {
  const { request, now } = reading
  const answer = fieldsOf(body, 'quote')
  const { action, estimate, transactionRequest } = answer
  assertAction(fieldsOf(action, 'action'), reading)
  const estimated = fieldsOf(estimate, 'estimate')
  const amountOutUnits = unitsOf(estimated.toAmount, 'output')
  const amountOutMinUnits = unitsOf(estimated.toAmountMin, 'minimum')
  if (unitsOf(estimated.fromAmount, 'input') !== request.amountInUnits)
    throw changed('a quote for another amount')
  assertMinimum(request, amountOutUnits, amountOutMinUnits)
  const { origin, destination, recipient, amountInUnits } = request
  const tool = parseText(answer.tool) ?? providerName
  const isDirect = origin.chainId === destination.chainId
  const transactionId = hashOf(answer.transactionId, 'transaction id')
  return {
    provider: providerName,
    providerRequestId: transactionId,
    depositId: transactionId,
    origin,
    destination,
    recipient,
    amountInUnits,
    amountOutUnits,
    amountOutMinUnits,
    fees: feesOf(estimated.feeCosts, reading),
    legs: [{ tool, origin, destination, amountInUnits, amountOutUnits }],
    priceImpactBps: impactOf(estimated),
    etaSeconds: secondsOf(estimated.executionDuration),
    expiresAt: later(now, request.ttlSeconds * 1_000),
    steps: { family: 'evm', chainId: origin.chainId, ...callOf(transactionRequest, reading) },
    settledBy: isDirect ? 'receipt' : 'status',
  }
}

function assertAction(action: Fields, { request, rows }: Reading): void {
  const isAt = (chainId: unknown, token: unknown, expected: RouteRequest['origin']) => {
    const row = rows.get(expected.chainId)
    const { address } = fieldsOf(token, 'token')
    return (
      row !== undefined &&
      chainId === Number(expected.chainId) &&
      typeof address === 'string' &&
      same(address, currencyOf(row, expected.token))
    )
  }
  if (!isAt(action.fromChainId, action.fromToken, request.origin))
    throw changed('a quote for another token in')
  if (!isAt(action.toChainId, action.toToken, request.destination))
    throw changed('a quote for another token out')
  if (!same(addressOf(action.fromAddress, 'sender'), request.user)) throw changed('a quote of another sender')
  if (!same(addressOf(action.toAddress, 'recipient'), request.recipient))
    throw changed('a quote for another recipient')
}

function callOf(value: unknown, { request }: Reading) {
  const { to, data, value: sent, from, chainId, gasLimit } = fieldsOf(value, 'transaction')
  if (chainId !== Number(request.origin.chainId)) throw changed('a call on another chain')
  if (!same(addressOf(from, 'sender'), request.user)) throw changed('a call of another sender')
  const gas = gasLimit === undefined ? null : quantityOf(gasLimit, 'gas')
  const isDirect = request.origin.chainId === request.destination.chainId
  const kind = isDirect ? ('swap' as const) : ('deposit' as const)
  return {
    calls: [
      {
        kind,
        to: addressOf(to, 'target'),
        value: quantityOf(sent, 'value'),
        data: hexOf(data, 'calldata', { bytesMax: callBytesMax, prefix: '0x' }),
      },
    ],
    gas,
  }
}

/**
 * Returns the fees that are included in the amounts, each in its own token. Throws `no_route` for a fee on top of the
 * input, because the swap would not pay it.
 */
function feesOf(value: unknown, { rows }: Reading): RouteFee[] {
  const list = value === undefined ? [] : value
  if (!Array.isArray(list) || list.length > feesMax) throw changed('no list of fees')
  return list.flatMap((each): RouteFee[] => {
    const { amount, token, included } = fieldsOf(each, 'fee')
    const amountUnits = unitsOf(amount, 'fee')
    if (amountUnits === 0n) return []
    const { address, chainId } = fieldsOf(token, 'token of a fee')
    if (included === true) {
      const row = rows.get(String(chainId))
      if (!row || !isAddress(address)) return []
      const paid = same(address, nativeName) ? row.native.address : address
      return [{ type: 'bridge', chainId: row.id, token: paid, amountUnits, isIncluded: true }]
    }
    throw new Fault('no_route', 'The route has a fee that is paid beside the input', {
      extras: { upstream: providerName, reason: 'unsupported_fee' },
    })
  })
}

/**
 * Returns the price impact in hundredths of a percent, from the quote's dollars; it is shown and decides nothing.
 */
function impactOf({ fromAmountUSD, toAmountUSD }: Fields): number {
  const [from, to] = [Number(fromAmountUSD), Number(toAmountUSD)]
  const lost = from > 0 && to >= 0 ? Math.round((1 - to / from) * Number(fullBps)) : 0
  return Number.isFinite(lost) ? Math.max(-10_000, Math.min(10_000, lost)) : 0
}
