import type { ActionHandler } from './action-handler.ts'
import { type AssetTransfer, sendAsset } from './send-asset.ts'
import type { Account } from './state.ts'
import {
  createSubAccount,
  renameSubAccount,
  subAccountOf,
  subAccountSpotTransfer,
  subAccountTransfer,
} from './sub-accounts.ts'
import { cancelTwap, placeTwap, type TwapWire } from './twap.ts'
import { setMode } from './unified.ts'
import type { Venue } from './venue.ts'

/** The canonicaliser has validated the action, so the casts below only name its type. */
const cast = <T>(action: Record<string, unknown>): T => action as T

const abstractions = { i: 'disabled', u: 'unifiedAccount', p: 'portfolioMargin' } as const

/** The account that the action names: the signer's own, or one of its sub-accounts. */
const namedAccount = (venue: Venue, account: Account, user: string): Account =>
  user === account.address ? account : subAccountOf(venue, account, user)

/** Account modes, sub-accounts, transfers between sub-accounts, and TWAP orders. */
export const accountHandlers: Record<string, ActionHandler> = {
  userSetAbstraction: (venue, account, action) => {
    const { user, abstraction } = cast<{ user: string; abstraction: Account['abstraction'] }>(action)
    setMode(venue, namedAccount(venue, account, user), abstraction)
    return undefined
  },
  agentSetAbstraction: (venue, account, action) => {
    setMode(venue, account, abstractions[action.abstraction as keyof typeof abstractions])
    return undefined
  },
  userDexAbstraction: (venue, account, action) => {
    const { user, enabled } = cast<{ user: string; enabled: boolean }>(action)
    namedAccount(venue, account, user).dexAbstraction = enabled
    return undefined
  },
  agentEnableDexAbstraction: (_venue, account) => {
    account.dexAbstraction = true
    return undefined
  },
  sendAsset: (venue, account, action) => {
    sendAsset(venue, account, cast<AssetTransfer>(action))
    return undefined
  },
  createSubAccount: (venue, account, action) => ({
    type: 'createSubAccount',
    data: createSubAccount(venue, account, String(action.name)),
  }),
  subAccountModify: (venue, account, action) => {
    renameSubAccount(venue, account, String(action.subAccountUser), String(action.name))
    return undefined
  },
  subAccountTransfer: (venue, account, action) => {
    subAccountTransfer(venue, account, cast<Parameters<typeof subAccountTransfer>[2]>(action))
    return undefined
  },
  subAccountSpotTransfer: (venue, account, action) => {
    const wanted = cast<Omit<Parameters<typeof subAccountSpotTransfer>[2], 'nonce'>>(action)
    subAccountSpotTransfer(venue, account, { ...wanted, nonce: venue.state.nowMs })
    return undefined
  },
  twapOrder: (venue, account, action) => ({
    type: 'twapOrder',
    data: { status: placeTwap(venue, account, cast<{ twap: TwapWire }>(action).twap) },
  }),
  twapCancel: (venue, account, action) => ({
    type: 'twapCancel',
    data: { status: cancelTwap(venue, account, cast<{ a: number; t: number }>(action)) },
  }),
}
