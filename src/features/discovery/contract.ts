import { group, read } from '#kernel/contract/operation.ts'
import * as T from '#kernel/contract/schema.ts'
import { Nullable, OneOf, OpenObject, Text, Time, TimeOrNull } from '#kernel/contract/wire-types.ts'

export const healthStates = ['ok', 'degraded', 'down'] as const
const Health = OneOf(healthStates)

const Part = (description: string) => T.Optional(Nullable(T.Object({}, { ...OpenObject, description })))

/** These are the parts of the manifest; each describes the released sections of one subject. */
const parts = {
  chat: Part('The agents and how they answer'),
  trading: Part('Swaps, limit orders, hooks and the security check'),
  earn: Part('Yield in USDC'),
  perp: Part('Perpetual futures'),
  spot_venue: Part('Spot trading on the venue'),
  wallets: Part('Wallets and holdings'),
  notifications: Part('How news arrives'),
  chains: Part('The chains that are served'),
  auth: Part('How callers prove who they are'),
}
export type Capability = keyof typeof parts
export const capabilities = Object.keys(parts) as Capability[]

export const contract = group('discovery', 'What the gateway offers and whether it is healthy. Public.', {
  capabilities: read('GET /capabilities', {
    summary: 'What this gateway offers, section by section',
    description:
      'Use it first, to learn which sections this gateway has released, with the minimums and limits that validation applies. Sections that are not released are absent. Next: `auth_register`, or the operations listed as `endpoints`.',
    access: 'public',
    output: T.Object(
      {
        ...parts,
        protocols: T.Optional(Nullable(T.Array(T.String(), { examples: [['http', 'sse']] }))),
      },
      { $id: 'CapabilitiesResponse' },
    ),
  }),
  health: read('GET /health', {
    summary: 'Whether the gateway and its dependencies are healthy',
    description:
      'Use it to monitor the gateway; it needs no credential. 200 with `degraded` means that an upstream is silent, that money is on hold, or that the operator has stopped trading; 503 means that the database is down. Next: retry after `Retry-After` seconds while it answers 503.',
    access: 'public',
    faults: ['unavailable'],
    output: T.Object(
      {
        status: Health,
        version: Text,
        environment: Text,
        time: Time,
        uptime_seconds: T.Integer(),
        checks: T.Object({
          store: T.Object({ status: Health, latency_ms: Nullable(T.Integer()) }),
          runner: T.Object({
            status: Health,
            queue_depth: Nullable(T.Integer()),
            oldest_pending_seconds: Nullable(T.Integer()),
          }),
          custody: T.Object({ status: Health }),
          money: T.Object(
            {
              status: Health,
              on_hold: T.Array(T.Object({ scope: Text, reason: Text, since: Time }), {
                description:
                  'Why money waits: accepted, signed and fired is nothing of the scope, which is a chain id or `all`',
              }),
              stopped_since: T.Union([Time, T.Null()], {
                description:
                  'Since when the kill switch of the operator stops what opens or spends, for all users; null while it is off',
              }),
              replicated: Nullable(
                T.Boolean({
                  description:
                    'Whether the database has a live synchronous standby; null where none is demanded',
                }),
              ),
            },
            { description: 'Whether the gateway moves money now' },
          ),
          upstreams: T.Record(T.String(), T.Object({ status: Health, last_ok_at: TimeOrNull })),
        }),
      },
      { $id: 'HealthResponse' },
    ),
  }),
})
