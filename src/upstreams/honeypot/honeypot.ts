import { createTokenReports, type TokenReports } from '#kernel/money/token-security-reports.ts'
import type { Net } from '#kernel/wire/upstream-http.ts'
import { assessReply, source } from './wire.ts'

/** The gateway's chains that the service covers. */
const covered = ['1', '8453']

/** Reports from honeypot.is, which simulates trades of EVM tokens. */
export const createHoneypot = ({ url, net }: { url: string; net: Net }): TokenReports =>
  createTokenReports(
    {
      source,
      covers: ({ id }) => covered.includes(id),
      urlOf: ({ id }, address) => `${url}/v2/IsHoneypot?address=${encodeURIComponent(address)}&chainID=${id}`,
      assess: assessReply,
    },
    { net },
  )
