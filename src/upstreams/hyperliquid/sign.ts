import {
  ApproveAgentRequest,
  ApproveAgentTypes,
  CancelRequest,
  OrderRequest,
  UpdateLeverageRequest,
  UsdClassTransferRequest,
  UsdClassTransferTypes,
  Withdraw3Request,
  Withdraw3Types,
} from '@nktkas/hyperliquid/api/exchange'
import { canonicalize, signL1Action, signUserSignedAction } from '@nktkas/hyperliquid/signing'
import { privateKeyToAccount, privateKeyToAddress } from 'viem/accounts'
import { bytesToHex } from 'viem/utils'
import type { VenueAction, VenueIntent, VenueOrder, VenueScheme } from '#kernel/venue.ts'

/** What the venue hashes is made here, from the intent alone: key order and decimals are those of its schema. */

const tifs = { gtc: 'Gtc', ioc: 'Ioc', alo: 'Alo' } as const
const groupings = { none: 'na', bracket: 'normalTpsl', position: 'positionTpsl' } as const
/** Any chain will do as long as message and domain name the same one; the wallet's money is on this one. */
const signatureChainId = '0xa4b1'
const network = { signatureChainId, hyperliquidChain: 'Mainnet' } as const

type Hex = `0x${string}`
type Wire = { type: string } & Record<string, unknown>

const wireOrder = ({ asset, isBuy, price, size, reduceOnly, when, cloid }: VenueOrder) => ({
  ...{ a: asset, b: isBuy, p: price, s: size, r: reduceOnly },
  t:
    'tif' in when
      ? { limit: { tif: tifs[when.tif] } }
      : { trigger: { isMarket: when.isMarket, triggerPx: when.triggerPrice, tpsl: when.leg } },
  c: cloid,
})

/** The action as it stands on the wire; user-signed ones carry their nonce inside. */
export function wireAction(action: VenueAction, nonce: number): Wire {
  switch (action.type) {
    case 'order':
      return canonicalize(OrderRequest.entries.action, {
        ...{ type: 'order', orders: action.orders.map(wireOrder), grouping: groupings[action.grouping] },
      }) as Wire
    case 'cancel':
      return canonicalize(CancelRequest.entries.action, {
        ...{
          type: 'cancel',
          cancels: action.cancels.map(({ asset, orderId }) => ({ a: asset, o: orderId })),
        },
      }) as Wire
    case 'set_leverage': {
      const { asset, isCross, leverage } = action
      return canonicalize(UpdateLeverageRequest.entries.action, {
        ...{ type: 'updateLeverage', asset, isCross, leverage },
      }) as Wire
    }
    case 'approve_agent':
      return canonicalize(ApproveAgentRequest.entries.action, {
        ...{ type: 'approveAgent', ...network, agentAddress: action.agent.toLowerCase() },
        ...{ agentName: action.name, nonce },
      }) as Wire
    case 'withdraw':
      return canonicalize(Withdraw3Request.entries.action, {
        ...{ type: 'withdraw3', ...network, destination: action.destination.toLowerCase() },
        ...{ amount: action.amount, time: nonce },
      }) as Wire
    case 'move_cash':
      return canonicalize(UsdClassTransferRequest.entries.action, {
        ...{
          type: 'usdClassTransfer',
          ...network,
          amount: action.amount,
          toPerp: action.to === 'perp',
          nonce,
        },
      }) as Wire
  }
}

const typesOf = {
  approve_agent: ApproveAgentTypes,
  withdraw: Withdraw3Types,
  move_cash: UsdClassTransferTypes,
} as const

const isUserSigned = (type: VenueAction['type']): type is keyof typeof typesOf => type in typesOf

/** Lent to custody. */
export const hyperliquidScheme: VenueScheme = {
  addressOf: (secret) => privateKeyToAddress(bytesToHex(secret)),

  async sign(secret, { action, nonce: given, expiresAtMs }: VenueIntent) {
    const nonce = Number(given)
    const wallet = privateKeyToAccount(bytesToHex(secret))
    const wire = wireAction(action, nonce)
    if (isUserSigned(action.type)) {
      const signed = wire as Wire & { signatureChainId: Hex }
      const signature = await signUserSignedAction({ wallet, action: signed, types: typesOf[action.type] })
      return JSON.stringify({ action: wire, nonce, signature })
    }
    const expiry = expiresAtMs === null ? {} : { expiresAfter: expiresAtMs }
    const signature = await signL1Action({ wallet, action: wire, nonce, ...expiry })
    return JSON.stringify({ action: wire, nonce, signature, ...expiry })
  },
}
