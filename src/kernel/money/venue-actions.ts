/** Actions at a trading venue in the gateway's own types. Only the adapter knows the wire format. */

export type VenueOrder = {
  asset: number
  isBuy: boolean
  price: string
  size: string
  reduceOnly: boolean
  when:
    | { tif: 'gtc' | 'ioc' | 'alo' }
    /** A trigger order is inactive until the mark price reaches the trigger price. */
    | { triggerPrice: string; leg: 'tp' | 'sl'; isMarket: boolean }
  /** The client order id: 16 bytes that are derived from the task, by which the order is looked up. */
  cloid: string
}
/** Asset numbers from 10,000 to 99,999 are spot markets; higher ones are perpetuals of other deployers. */
export const isSpotAsset = (asset: number): boolean => asset >= 10_000 && asset < 100_000

/** `bracket` is an order with its exits; `position` is exits that follow the size of the whole position. */
export type VenueGrouping = 'none' | 'bracket' | 'position'

export type VenueAction =
  | { type: 'order'; orders: VenueOrder[]; grouping: VenueGrouping }
  | { type: 'cancel'; cancels: { asset: number; orderId: number }[] }
  | { type: 'set_leverage'; asset: number; isCross: boolean; leverage: number }
  | { type: 'approve_agent'; agent: string; name: string }
  | { type: 'withdraw'; destination: string; amount: string }
  | { type: 'move_cash'; amount: string; to: 'perp' | 'spot' }

/** Whether the agent key may sign the action; all others need the key of the account itself. */
export const isAgentAction = (action: VenueAction): boolean =>
  action.type === 'order' || action.type === 'cancel' || action.type === 'set_leverage'

const arbitrumBridge = { chainId: '42161', address: '0x2Df1c51E09aECF9cacB7bc98cB1742757f163dF7' }
export const publishedBridges = {
  local: arbitrumBridge,
  mainnet: arbitrumBridge,
  testnet: { chainId: '421614', address: '0x08cfc1B6b2dCF36A1480b99353A354AA8AC56f89' },
} as const

/** A key that may trade for an account at the venue, and do nothing else. */
export type Agent = {
  id: string
  address: string
  createdAt: Date
  approvedAt: Date | null
  expiresAt: Date | null
}
