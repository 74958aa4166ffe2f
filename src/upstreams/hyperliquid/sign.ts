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
import { canonicalize, createL1ActionHash, signUserSignedAction } from '@nktkas/hyperliquid/signing'
import { signRecoverable } from 'tiny-secp256k1'
import {
  bytesToHex,
  concat,
  hashTypedData,
  hexToBytes,
  keccak256,
  numberToHex,
  stringToHex,
} from 'viem/utils'
import type { VenueAction, VenueOrder } from '#kernel/money/venue-actions.ts'
import type { VenueIntent } from '#kernel/task/signer.ts'

/** Builds and signs the venue's actions from the intent alone, with the key order and decimals of its schema. */

const tifs = { gtc: 'Gtc', ioc: 'Ioc', alo: 'Alo' } as const
const groupings = { none: 'na', bracket: 'normalTpsl', position: 'positionTpsl' } as const
/** The network for which a signature is valid. */
export type VenueNetwork = 'mainnet' | 'testnet' | 'local'

/**
 * `chain` and `source` are signed, so that a signature is valid on one network only. The local network signs
 * like the test network, so its signatures cannot move real money.
 */
const testnet = {
  chain: { signatureChainId: '0x66eee', hyperliquidChain: 'Testnet' },
  source: 'b',
} as const
const networks = {
  mainnet: { chain: { signatureChainId: '0xa4b1', hyperliquidChain: 'Mainnet' }, source: 'a' },
  testnet,
  local: testnet,
} as const

type Hex = `0x${string}`
type Wire = { type: string } & Record<string, unknown>

const wireOrder = ({ asset, isBuy, price, size, reduceOnly, when, cloid }: VenueOrder) => ({
  a: asset,
  b: isBuy,
  p: price,
  s: size,
  r: reduceOnly,
  t:
    'tif' in when
      ? { limit: { tif: tifs[when.tif] } }
      : { trigger: { isMarket: when.isMarket, triggerPx: when.triggerPrice, tpsl: when.leg } },
  c: cloid,
})

/** Returns the wire format of an action; a user-signed action contains its nonce. */
export function wireAction(action: VenueAction, nonce: number, network: VenueNetwork): Wire {
  const { chain } = networks[network]
  switch (action.type) {
    case 'order':
      return canonicalize(OrderRequest.entries.action, {
        type: 'order',
        orders: action.orders.map(wireOrder),
        grouping: groupings[action.grouping],
      }) as Wire
    case 'cancel':
      return canonicalize(CancelRequest.entries.action, {
        type: 'cancel',
        cancels: action.cancels.map(({ asset, orderId }) => ({ a: asset, o: orderId })),
      }) as Wire
    case 'set_leverage': {
      const { asset, isCross, leverage } = action
      return canonicalize(UpdateLeverageRequest.entries.action, {
        type: 'updateLeverage',
        asset,
        isCross,
        leverage,
      }) as Wire
    }
    case 'approve_agent':
      return canonicalize(ApproveAgentRequest.entries.action, {
        type: 'approveAgent',
        ...chain,
        agentAddress: action.agent.toLowerCase(),
        agentName: action.name,
        nonce,
      }) as Wire
    case 'withdraw':
      return canonicalize(Withdraw3Request.entries.action, {
        type: 'withdraw3',
        ...chain,
        destination: action.destination.toLowerCase(),
        amount: action.amount,
        time: nonce,
      }) as Wire
    case 'move_cash':
      return canonicalize(UsdClassTransferRequest.entries.action, {
        type: 'usdClassTransfer',
        ...chain,
        amount: action.amount,
        toPerp: action.to === 'perp',
        nonce,
      }) as Wire
  }
}

const typesOf = {
  approve_agent: ApproveAgentTypes,
  withdraw: Withdraw3Types,
  move_cash: UsdClassTransferTypes,
} as const

const isUserSigned = (type: VenueAction['type']): type is keyof typeof typesOf => type in typesOf

/** Signs a digest. The key is passed as bytes, which can be wiped; a string cannot. */
function signDigest(secret: Uint8Array, digest: Hex): { r: Hex; s: Hex; v: 27 | 28 } {
  const { signature, recoveryId } = signRecoverable(hexToBytes(digest), secret)
  const r = bytesToHex(signature.subarray(0, 32))
  const s = bytesToHex(signature.subarray(32))
  return { r, s, v: recoveryId === 0 ? 27 : 28 }
}

const textHash = (text: string): Hex => keccak256(stringToHex(text))
const word = (value: number): Hex => numberToHex(value, { size: 32 })
const hashOf = (...words: Hex[]): Hex => keccak256(concat(words))
const domainType = 'EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)'
const exchangeDomain = hashOf(textHash(domainType), textHash('Exchange'), textHash('1'), word(1337), word(0))
const agentType = textHash('Agent(string source,bytes32 connectionId)')
const sourceHashes = { a: textHash('a'), b: textHash('b') }

/** Returns the EIP-712 digest of an action; domain and source are constant per network. */
const agentDigest = (actionHash: Hex, network: VenueNetwork): Hex =>
  hashOf('0x1901', exchangeDomain, hashOf(agentType, sourceHashes[networks[network].source], actionHash))

/** Provides the wallet interface that the library requires. */
const walletOf = (secret: Uint8Array, address: Hex) => ({
  address,
  async signTypedData(data: object): Promise<Hex> {
    const { r, s, v } = signDigest(secret, hashTypedData(data as Parameters<typeof hashTypedData>[0]))
    return concat([r, s, v === 27 ? '0x1b' : '0x1c'])
  },
})

/** Signs an action, and returns the complete body of its request as it is stored and sent. */
export async function signIntent(
  secret: Uint8Array,
  { action, nonce: intentNonce, expiresAtMs, signer }: VenueIntent,
  network: VenueNetwork,
): Promise<string> {
  const nonce = Number(intentNonce)
  const wire = wireAction(action, nonce, network)
  if (isUserSigned(action.type)) {
    const signed = wire as Wire & { signatureChainId: Hex }
    const wallet = walletOf(secret, signer as Hex)
    const signature = await signUserSignedAction({ wallet, action: signed, types: typesOf[action.type] })
    return JSON.stringify({ action: wire, nonce, signature })
  }
  const expiry = expiresAtMs === null ? {} : { expiresAfter: expiresAtMs }
  const signature = signDigest(
    secret,
    agentDigest(createL1ActionHash({ action: wire, nonce, ...expiry }), network),
  )
  return JSON.stringify({ action: wire, nonce, signature, ...expiry })
}
