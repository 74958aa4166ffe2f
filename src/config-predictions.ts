import { createHash } from 'node:crypto'
import { BadValue, type Parse } from './config-parsers.ts'

/** The operator's key at the relayer of a prediction market, which pays for the wallets of users. */

export type BuilderKey = { key: string; secret: string; passphrase: string }

/** Only the relayer of the local world knows this key. */
export const worldBuilderKey = [
  'portico-local-world',
  createHash('sha256').update('portico local world polymarket builder').digest('base64'),
  'local',
].join(':')

export const optionalBuilderKey: Parse<BuilderKey | undefined> = (value) => {
  if (value === '') return undefined
  const [key, secret, passphrase, ...others] = value.split(':')
  if (!key || !secret || !passphrase || others.length > 0) throw new BadValue('key:secret:passphrase')
  return { key, secret, passphrase }
}
