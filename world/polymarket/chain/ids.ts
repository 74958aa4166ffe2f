import { joinBytes } from '#world/venue-core/signature.ts'
import { type Address, contracts, type Hex, safeInitCodeHash } from './addresses.ts'
import type { ChainEvent, ChainMarket, Protocol } from './chain-terms.ts'
import { bytesOf, create2Address, hash, hexOf, word } from './encoding.ts'

/** Ids of markets and addresses of wallets, computed without the chain. */

const field = 21888242871839275222246405745257275088696311157297823662689037894645226208583n
const yIsOdd = 1n << 254n

const power = (base: bigint, exponent: bigint): bigint => {
  let result = 1n
  for (let square = base, rest = exponent; rest > 0n; rest >>= 1n) {
    if (rest & 1n) result = (result * square) % field
    square = (square * square) % field
  }
  return result
}

export const conditionIdOf = (oracle: Address, questionId: Hex, outcomes = 2): Hex =>
  hexOf(hash(bytesOf(oracle), bytesOf(questionId), word(outcomes)))

/** The x of the first point after the hash on y^2 = x^3 + 3, with the parity of y in bit 254. */
export const collectionIdOf = (conditionId: Hex, indexSet: bigint): Hex => {
  const hashed = BigInt(hexOf(hash(bytesOf(conditionId), word(indexSet))))
  const mustBeOdd = hashed >> 255n === 1n
  for (let x = (hashed + 1n) % field; ; x = (x + 1n) % field) {
    const square = (x * x * x + 3n) % field
    const y = power(square, (field + 1n) / 4n)
    if ((y * y) % field !== square) continue
    // One of the two y is odd and the other even.
    return hexOf(word(mustBeOdd && y !== 0n ? x ^ yIsOdd : x))
  }
}

export const positionIdOf = (collateral: Address, collectionId: Hex): bigint =>
  BigInt(hexOf(hash(bytesOf(collateral), bytesOf(collectionId))))

const marketOver = (collateral: Address, oracle: Address, questionId: Hex): ChainMarket => {
  const conditionId = conditionIdOf(oracle, questionId)
  const idOf = (indexSet: bigint) => positionIdOf(collateral, collectionIdOf(conditionId, indexSet))
  const isNegRisk = collateral === contracts.wrappedCollateral
  return { protocol: 'v1', isNegRisk, conditionId, questionId, outcomeIds: [idOf(1n), idOf(2n)] }
}

/** v1 over USDC.e. */
export const standardMarket = (questionId: Hex): ChainMarket =>
  marketOver(contracts.usdce, contracts.oracle, questionId)

const bytesArgument = (data: Hex): Uint8Array => {
  const content = bytesOf(data)
  return joinBytes(word(content.length), content, new Uint8Array((32 - (content.length % 32)) % 32))
}

const checkCount = (markets: number): void => {
  if (!Number.isInteger(markets) || markets < 1 || markets > 255)
    throw new Error(`markets must be 1 to 255, not ${markets}.`)
}

/** v1 over wrapped collateral. A question's id is the event's, whose last byte is zero, plus its index. */
export const negRiskEvent = (metadata: Hex, markets: number): ChainEvent => {
  checkCount(markets)
  // abi.encode(oracle, fee, metadata): the bytes begin after three words.
  const encoded = joinBytes(word(contracts.oracle), word(0), word(96), bytesArgument(metadata))
  const eventId = (BigInt(hexOf(hash(encoded))) >> 8n) << 8n
  return {
    protocol: 'v1',
    eventId: hexOf(word(eventId)),
    metadata,
    markets: Array.from({ length: markets }, (_, index) =>
      marketOver(contracts.wrappedCollateral, contracts.negRiskAdapter, hexOf(word(eventId + BigInt(index)))),
    ),
  }
}

/** Module and hash, and how many conditions there are: the left 144 bits and 16 more. */
const baseOf = (module: bigint, data: Hex, conditions: number): bigint => {
  const hashed = BigInt(hexOf(hash(word(module), word(64), bytesArgument(data))))
  return (module << 248n) | (BigInt.asUintN(128, hashed) << 120n) | (BigInt(conditions) << 104n)
}

const marketOfV2 = (yes: bigint, data: Hex, { isNegRisk }: { isNegRisk: boolean }): ChainMarket => {
  const conditionId = hexOf(word(yes).subarray(0, 31))
  return { protocol: 'v2', isNegRisk, conditionId, questionId: data, outcomeIds: [yes, yes + 1n] }
}

export const binaryMarketV2 = (data: Hex): ChainMarket =>
  marketOfV2(baseOf(1n, data, 0), data, { isNegRisk: false })

export const negRiskEventV2 = (data: Hex, markets: number): ChainEvent => {
  checkCount(markets)
  const base = baseOf(2n, data, markets)
  return {
    protocol: 'v2',
    eventId: hexOf(word(base).subarray(0, 29)),
    metadata: data,
    markets: Array.from({ length: markets }, (_, index) =>
      marketOfV2(base | (BigInt(index) << 8n), data, { isNegRisk: true }),
    ),
  }
}

const reservedBits = ((1n << 64n) - 1n) << 40n

/** Bits 40 to 103 are zero in v2. */
export const protocolOf = (outcomeId: bigint): Protocol => ((outcomeId & reservedBits) === 0n ? 'v2' : 'v1')

/** Proxies of Solady's layout, whose code ends with these arguments. */
const walletArguments = (owner: Address): Uint8Array => joinBytes(word(contracts.walletFactory), word(owner))

const beaconForm = {
  prefix: bytesOf('0x6100923d8160233d3973'),
  code: bytesOf(
    '0x60195155f3363d3d373d3d363d602036600436635c60da1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3',
  ),
  target: contracts.walletBeacon,
}
const earlierForm = {
  prefix: bytesOf('0x61007d3d8160233d3973'),
  code: bytesOf(
    '0x60095155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc545af43d6000803e6038573d6000fd5b3d6000f3',
  ),
  target: contracts.walletImplementation,
}

const walletIn = ({ prefix, code, target }: typeof earlierForm | typeof beaconForm, owner: Address) => {
  const args = walletArguments(owner)
  return create2Address(contracts.walletFactory, hash(args), hash(prefix, bytesOf(target), code, args))
}

/** The deposit wallet of an owner, deployed or not. */
export const walletOf = (owner: Address): Address => walletIn(beaconForm, owner)
/** The form of earlier wallets, which this world never deploys. */
export const earlierWalletOf = (owner: Address): Address => walletIn(earlierForm, owner)

export const safeOf = (owner: Address): Address =>
  create2Address(contracts.safeFactory, hash(word(owner)), bytesOf(safeInitCodeHash))
