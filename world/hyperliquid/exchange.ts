import { RequestError, rejectRequest } from '#world/venue-core/request-error.ts'
import { accountHandlers } from './account-actions.ts'
import type { ActionHandler, ActionResponse } from './action-handler.ts'
import type { Action } from './actions.ts'
import { approveAgent, principalOf } from './agents.ts'
import { type Grouping, placeGroup } from './brackets.ts'
import { unitsText } from './decimal.ts'
import { topUpIsolated, updateIsolatedMargin, updateLeverage } from './leverage.ts'
import { withdrawable } from './margin.ts'
import { cancelByCloid, cancelOrders, type ModifyWire, modifyOne, modifyOrder } from './modify.ts'
import { useNonce } from './nonces.ts'
import type { OrderWire } from './place-order.ts'
import type { Account } from './state.ts'
import { classTransfer, spotSend, usdSend, withdraw } from './transfers.ts'
import { stateOf, type Venue } from './venue.ts'

/** An action with a decoded signature; `exchange` decides whether the signer may act. */
export type Request = {
  signer: string
  userSigned: boolean
  action: Action
  nonce: number
  vaultAddress?: string
  expiresAfter?: number
}

export type Answer = { status: 'ok'; response: ActionResponse } | { status: 'err'; response: string }

/** The canonicaliser has validated the action, so the casts below only name its type. */
const cast = <T>(action: Record<string, unknown>): T => action as T

const defaultResponse = { type: 'default' } as const

const statuses = (type: string, list: unknown) => ({ type, data: { statuses: list } })

const builderOf = (account: Account, builder: { b: string; f: number } | undefined) => {
  if (!builder || builder.f === 0) return null
  if ((account.builders.get(builder.b) ?? 0) < builder.f) rejectRequest('Builder fee has not been approved.')
  return { address: builder.b, tenths: builder.f }
}

const scheduleCancel = (venue: Venue, account: Account, time: number | undefined): void => {
  if (time === undefined) {
    account.cancelAtMs = null
    return
  }
  const required = venue.state.settings.scheduleCancelVolumeUsd
  if (account.volume < BigInt(required) * 100_000_000n)
    rejectRequest(
      `Cannot set scheduled cancel time until enough volume traded. Required: $${required}. Traded: $${unitsText(account.volume)}.`,
    )
  if (time < venue.state.nowMs + 5_000)
    rejectRequest('Scheduled cancel time too early, must be at least 5 seconds from now.')
  account.cancelAtMs = time
}

/** `0.01%` as tenths of a basis point. */
const percentTenths = (text: string): number => {
  const match = /^([0-9]+(?:\.[0-9]+)?)%$/.exec(text)
  const tenths = match ? Math.round(Number(match[1]) * 1_000) : Number.NaN
  return tenths >= 0 && tenths <= 1_000 ? tenths : rejectRequest('Invalid builder fee rate.')
}

const handlers: Record<string, ActionHandler> = {
  order: (venue, account, action) => {
    const { orders, grouping, builder } = cast<{
      orders: OrderWire[]
      grouping: Grouping
      builder?: { b: string; f: number }
    }>(action)
    return statuses(
      'order',
      placeGroup(venue, account, orders, { grouping, links: { builder: builderOf(account, builder) } }),
    )
  },
  cancel: (venue, account, action) =>
    statuses(
      'cancel',
      cancelOrders(venue, account, cast<{ cancels: { a: number; o: number }[] }>(action).cancels),
    ),
  cancelByCloid: (venue, account, action) =>
    statuses(
      'cancel',
      cancelByCloid(venue, account, cast<{ cancels: { asset: number; cloid: string }[] }>(action).cancels),
    ),
  modify: (venue, account, action) => {
    modifyOrder(venue, account, cast<ModifyWire>(action), { always: action.a === true })
    return undefined
  },
  batchModify: (venue, account, action) => {
    const { modifies } = cast<{ modifies: ModifyWire[] }>(action)
    return statuses(
      'order',
      modifies.map((wire) => modifyOne(venue, account, wire, { always: action.a === true })),
    )
  },
  scheduleCancel: (venue, account, action) => {
    scheduleCancel(venue, account, action.time as number | undefined)
    return undefined
  },
  updateLeverage: (venue, account, action) => {
    updateLeverage(venue, account, cast<Parameters<typeof updateLeverage>[2]>(action))
    return undefined
  },
  updateIsolatedMargin: (venue, account, action) => {
    updateIsolatedMargin(venue, account, cast<Parameters<typeof updateIsolatedMargin>[2]>(action))
    return undefined
  },
  topUpIsolatedOnlyMargin: (venue, account, action) => {
    topUpIsolated(venue, account, cast<Parameters<typeof topUpIsolated>[2]>(action))
    return undefined
  },
  usdClassTransfer: (venue, account, action) => {
    const { amount, toPerp } = cast<{ amount: string; toPerp: boolean }>(action)
    classTransfer(venue, account, amount, { toPerp })
    return undefined
  },
  usdSend: (venue, account, action) => {
    const { destination, amount } = cast<{ destination: string; amount: string }>(action)
    usdSend(venue, account, destination, amount)
    return undefined
  },
  spotSend: (venue, account, action) => {
    const { destination, token, amount, time } = cast<{
      destination: string
      token: string
      amount: string
      time: number
    }>(action)
    spotSend(venue, account, { destination, token, amount, nonce: time })
    return undefined
  },
  withdraw3: (venue, account, action) => {
    const { destination, amount, time } = cast<{ destination: string; amount: string; time: number }>(action)
    withdraw(venue, account, destination, { amount, nonce: time })
    return undefined
  },
  approveAgent: (venue, account, action) => {
    const { agentAddress, agentName } = cast<{ agentAddress: string; agentName?: string }>(action)
    approveAgent(venue.state, account, agentAddress, agentName ?? '')
    return undefined
  },
  approveBuilderFee: (_venue, account, action) => {
    account.builders.set(String(action.builder), percentTenths(String(action.maxFeeRate)))
    return undefined
  },
  ...accountHandlers,
  setReferrer: () => rejectRequest('Referral code not registered'),
  setDisplayName: (_venue, account, action) => {
    account.displayName = String(action.displayName) || null
    return undefined
  },
  reserveRequestWeight: (venue, account, action) => {
    const weight = Number(action.weight)
    const cost = BigInt(weight) * 50_000n
    if (withdrawable(account, (asset) => stateOf(venue, asset).mark) < cost)
      rejectRequest('Insufficient balance for withdrawal')
    account.raw -= cost
    venue.state.fees.perp += cost
    account.reserved += weight
    return undefined
  },
  noop: () => undefined,
}

/** Pace of an address above its request limit: one request in this time. */
const limitedEveryMs = 10_000

/** One request for every dollar traded, after an initial allowance; cancels have twice that. */
const countRequests = (venue: Venue, account: Account, { type, ...rest }: Action): void => {
  const batch = Object.values(rest).find(Array.isArray)?.length ?? 1
  account.requests += batch
  const allowance = venue.state.settings.requestsPerAddress
  if (allowance === 0) return
  const cap = allowance + Number(account.volume / 100_000_000n) + account.reserved
  const limit = type.startsWith('cancel') ? Math.min(cap + 100_000, cap * 2) : cap
  const isDue = venue.state.nowMs - (account.requestedAtMs ?? 0) >= limitedEveryMs
  if (account.requests > limit && !isDue)
    rejectRequest(
      `Too many cumulative requests sent (${account.requests} > ${limit}) for cumulative volume traded $${unitsText(account.volume)}. Place taker orders to free up 1 request per USDC traded.`,
    )
  account.requestedAtMs = venue.state.nowMs
}

const authorise = (venue: Venue, request: Request): Account => {
  const { signer, userSigned, nonce, vaultAddress, expiresAfter } = request
  const { state } = venue
  const account = userSigned ? state.accounts.get(signer) : principalOf(state, signer)
  if (!account || account.isMarketMaker)
    return rejectRequest(
      userSigned
        ? `Must deposit before performing actions. User: ${signer}`
        : `User or API Wallet ${signer} does not exist.`,
    )
  if (expiresAfter !== undefined && expiresAfter < state.nowMs) {
    account.requests += 5
    rejectRequest('Action already expired')
  }
  const set = state.nonces.get(signer) ?? []
  state.nonces.set(signer, set)
  const nonceError = useNonce(set, nonce, state.nowMs)
  if (nonceError) rejectRequest(nonceError)
  if (vaultAddress === undefined) return account
  const vault = state.accounts.get(vaultAddress)
  return vault?.master === account.address ? vault : rejectRequest(`Vault not registered: ${vaultAddress}`)
}

export const perform = (venue: Venue, request: Request): Answer => {
  try {
    const account = authorise(venue, request)
    countRequests(venue, account, request.action)
    const handler = handlers[request.action.type] as ActionHandler
    const response = handler(venue, account, request.action) ?? defaultResponse
    return { status: 'ok', response }
  } catch (error) {
    if (error instanceof RequestError) return { status: 'err', response: error.message }
    throw error
  }
}
