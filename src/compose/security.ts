import { security as makeSecurity } from '#features/security/security.ts'
import { honeypot } from '#upstreams/honeypot/honeypot.ts'
import { rugCheck } from '#upstreams/rugcheck/rugcheck.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import type { Parts } from './parts.ts'

type SecurityParts = Pick<Parts, 'core' | 'urls' | 'net' | 'chains'>

/** The services that judge tokens are asked as far as they are configured. */
export function openSecurity({ core, urls, net, chains }: SecurityParts) {
  const reports = [
    ...(urls.honeypot ? [honeypot({ url: urls.honeypot, net })] : []),
    ...(urls.rugcheck ? [rugCheck({ url: urls.rugcheck, net })] : []),
  ]
  const { readers } = chains
  const security = makeSecurity({ readers, reports, clock: core.clock, isSolanaAddress: isAddress })
  return { ...security, part: 'trading' as const }
}
