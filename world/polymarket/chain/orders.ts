import { hashText, recoverSigner as recoverAddress, typedDataDigest } from '#world/venue-core/signature.ts'
import { type Address, chainId, contracts, type Hex } from './addresses.ts'
import type { ChainMarket, ExchangeName, Order, OrderVerdict, SignedOrder } from './chain-terms.ts'
import { bytesOf, checksummed, domainSeparator, hash, hexOf, isSameAddress, word } from './encoding.ts'
import { safeOf, walletOf } from './ids.ts'

/** Hashes and signatures of orders, without the chain. */

const orderType =
  'Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,bytes32 builder)'
const orderTypeHash = hashText(orderType)
const nestedTypeHash = hashText(
  `TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)${orderType}`,
)
const walletNameHash = hashText('DepositWallet')
const walletVersionHash = hashText('1')

const domains: Record<ExchangeName, Uint8Array> = {
  standardExchange: domainSeparator('Polymarket CTF Exchange', '2', chainId, contracts.standardExchange),
  negRiskExchange: domainSeparator('Polymarket CTF Exchange', '2', chainId, contracts.negRiskExchange),
  exchangeV3: domainSeparator('Polymarket CTF Exchange', '3', chainId, contracts.exchangeV3),
}

export const exchangeOf = ({
  protocol,
  isNegRisk,
}: Pick<ChainMarket, 'protocol' | 'isNegRisk'>): ExchangeName => {
  if (protocol === 'v2') return 'exchangeV3'
  return isNegRisk ? 'negRiskExchange' : 'standardExchange'
}

const structHash = (order: Order): Uint8Array =>
  hash(
    orderTypeHash,
    word(order.salt),
    word(order.maker),
    word(order.signer),
    word(order.tokenId),
    word(order.makerAmount),
    word(order.takerAmount),
    word(order.side),
    word(order.signatureType),
    word(order.timestamp),
    word(order.metadata),
    word(order.builder),
  )

/** Under the exchange's domain: the order's id. */
export const orderHash = (order: Order, exchange: ExchangeName): Hex =>
  hexOf(typedDataDigest(domains[exchange], structHash(order)))

const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n

/** The signer of 65 bytes as contracts accept them: a small s, and a v of 27 or 28. */
export const recoverSigner = (digest: Uint8Array, signature: Hex): Address | undefined => {
  if (!/^0x[0-9a-fA-F]{130}$/.test(signature)) return undefined
  const [s, v] = [`0x${signature.slice(66, 130)}`, signature.slice(130).toLowerCase()]
  if ((v !== '1b' && v !== '1c') || BigInt(s) > halfOrder) return undefined
  const rs = bytesOf(signature.slice(0, 130))
  const found = recoverAddress(digest, { rs, parity: v === '1c' ? 1 : 0 })
  return found === undefined ? undefined : checksummed(found)
}

const signatureBytes = 65
/** What stands after the owner's signature: domain, contents, their type and its length. */
const nestedTail = (domain: Uint8Array, contents: Uint8Array): string =>
  Buffer.concat([domain, contents, Buffer.from(orderType), Uint8Array.of(0, orderType.length)]).toString(
    'hex',
  )

/** Who signed an order for a deposit wallet (ERC-7739). */
const recoverOwner = (order: SignedOrder, exchange: ExchangeName): Address | undefined => {
  const contents = structHash(order)
  const end = 2 + signatureBytes * 2
  if (order.signature.slice(end).toLowerCase() !== nestedTail(domains[exchange], contents)) return undefined
  const nested = hash(
    nestedTypeHash,
    contents,
    walletNameHash,
    walletVersionHash,
    word(chainId),
    word(order.signer),
    word(0),
  )
  const signature = order.signature.slice(0, end) as Hex
  return recoverSigner(typedDataDigest(domains[exchange], nested), signature)
}

const verdictOn = (order: SignedOrder, exchange: ExchangeName, digest: Uint8Array): Address | string => {
  if (order.signatureType === 3) {
    if (!isSameAddress(order.maker, order.signer)) return 'maker and signer of a deposit wallet differ'
    const owner = recoverOwner(order, exchange)
    return owner && isSameAddress(walletOf(owner), order.maker) ? owner : 'not signed by the wallet’s owner'
  }
  const signer = recoverSigner(digest, order.signature)
  if (!signer || !isSameAddress(signer, order.signer)) return 'not signed by the signer'
  if (order.signatureType === 0)
    return isSameAddress(order.maker, signer) ? signer : 'maker is not the signer'
  if (order.signatureType !== 2) return `signature type ${order.signatureType} is not supported`
  return isSameAddress(order.maker, safeOf(signer)) ? signer : 'maker is not the signer’s Safe'
}

/** Also for wallets that are not deployed yet. */
export const verifyOrder = (order: SignedOrder, exchange: ExchangeName): OrderVerdict => {
  const digest = typedDataDigest(domains[exchange], structHash(order))
  const found = verdictOn(order, exchange, digest)
  const id = hexOf(digest)
  return /^0x[0-9a-fA-F]{40}$/.test(found)
    ? { isValid: true, owner: found as Address, hash: id }
    : { isValid: false, reason: found, hash: id }
}
