import { signRecoverable } from 'tiny-secp256k1'
import { type PrivateKeyAccount, privateKeyToAccount } from 'viem/accounts'
import { hashText } from '#world/venue-core/signature.ts'
import { type Address, accountAddresses, type Hex } from './addresses.ts'
import type { AccountName } from './chain-terms.ts'
import { bytesOf, hexOf } from './encoding.ts'

/** The venue's own accounts. Their keys derive from public labels: they are worth nothing outside of a local world. */

const labels: Record<AccountName, string> = {
  operator: 'operator',
  relayer: 'relayer',
  resolver: 'resolver',
  autoRedeemer: 'auto redeemer',
  admin: 'admin',
  maker: 'maker',
}

export const addressOf = (name: AccountName): Address => accountAddresses[name]

const keyOf = (name: AccountName): Uint8Array =>
  hashText(`portico local world: prediction market ${labels[name]}`)

/** 65 bytes, with a v of 27 or 28. */
export const signHash = (name: AccountName, hash: Hex): Hex => {
  const { signature, recoveryId } = signRecoverable(bytesOf(hash), keyOf(name))
  return `${hexOf(signature)}${(27 + recoveryId).toString(16)}`
}

const derived = new Map<AccountName, PrivateKeyAccount>()

export const accountOf = (name: AccountName): PrivateKeyAccount => {
  const known = derived.get(name)
  if (known) return known
  const account = privateKeyToAccount(hexOf(keyOf(name)))
  derived.set(name, account)
  return account
}
