import { createSecurity } from '#features/security/security.ts'
import { createHoneypot } from '#upstreams/honeypot/honeypot.ts'
import { createRugCheck } from '#upstreams/rugcheck/rugcheck.ts'
import { isAddress } from '#upstreams/solana/base58.ts'
import type { Parts } from './section-parts.ts'

type SecurityParts = Pick<Parts, 'core' | 'urls' | 'net' | 'chains'>

/** Opens the security check of tokens, which asks only the configured security services. */
export function openSecurity({ core, urls, net, chains }: SecurityParts) {
  const reports = [
    ...(urls.honeypot ? [createHoneypot({ url: urls.honeypot, net })] : []),
    ...(urls.rugcheck ? [createRugCheck({ url: urls.rugcheck, net })] : []),
  ]
  const { readers } = chains
  const security = createSecurity({ readers, reports, clock: core.clock, isSolanaAddress: isAddress })
  return { ...security, part: 'trading' as const }
}
