import { concat, getAddress, getCreate2Address, keccak256, pad } from 'viem/utils'
import type { VenueWallet } from '#kernel/money/prediction-actions.ts'
import { contracts, type Hex, safeInitCodeHash } from './contracts.ts'

/**
 * The addresses of an owner's wallets, deployed or not.
 * https://docs.polymarket.com/developers/proxy-wallet
 */

/** The code of a proxy of Solady's layout: prefix, target, code, and the arguments that its code ends with. */
const beaconProxy = {
  prefix: '0x6100923d8160233d3973',
  target: contracts.walletBeacon,
  code: '0x60195155f3363d3d373d3d363d602036600436635c60da1b60e01b36527fa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50545afa5036515af43d6000803e604d573d6000fd5b3d6000f3',
} as const
/** Wallets that were deployed before the factory had a beacon. */
const earlierProxy = {
  prefix: '0x61007d3d8160233d3973',
  target: contracts.walletImplementation,
  code: '0x60095155f3363d3d373d3d363d7f360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc545af43d6000803e6038573d6000fd5b3d6000f3',
} as const

const lower = (address: string): Hex => address.toLowerCase() as Hex

function depositWallet(
  owner: string,
  { prefix, target, code }: typeof beaconProxy | typeof earlierProxy,
): Hex {
  const args = concat([pad(lower(contracts.walletFactory)), pad(lower(owner))])
  return getCreate2Address({
    from: contracts.walletFactory,
    salt: keccak256(args),
    bytecodeHash: keccak256(concat([prefix, lower(target), code, args])),
  })
}

const safe = (owner: string): Hex =>
  getCreate2Address({
    from: contracts.safeFactory,
    salt: keccak256(pad(lower(owner))),
    bytecodeHash: safeInitCodeHash,
  })

/** The first wallet is the one that the venue deploys for a new owner. */
export const walletsOf = (owner: string): VenueWallet[] => {
  const known = getAddress(owner)
  return [
    { kind: 'deposit_wallet', owner: known, wallet: depositWallet(owner, beaconProxy) },
    { kind: 'deposit_wallet', owner: known, wallet: depositWallet(owner, earlierProxy) },
    { kind: 'safe', owner: known, wallet: safe(owner) },
    { kind: 'eoa', owner: known, wallet: known },
  ]
}
