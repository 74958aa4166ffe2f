import { implement, type Operation, sharedRead } from '#kernel/contract/operation.ts'
import { contract } from './contract.ts'
import type { HealthReport } from './health.ts'

const sectionsOf = {
  chat: ['chat'],
  trading: ['swap', 'security', 'hooks', 'limit-orders', 'outstanding-orders'],
  earn: ['earn'],
  perp: ['perp'],
  spot_venue: ['spot_venue'],
  wallets: ['wallets', 'recipients', 'approvals'],
  notifications: ['notifications', 'webhooks'],
  chains: ['chains'],
  auth: ['auth', 'agents'],
} as const

export type Capability = keyof typeof sectionsOf
type Facts = Readonly<Record<string, unknown>>
export type CapabilityFacts = Partial<Record<Capability, Facts>>

type DiscoveryDeps = {
  operations: () => readonly Pick<Operation, 'name' | 'group' | 'entry'>[]
  facts: CapabilityFacts
  protocols: readonly string[]
  health: () => HealthReport | Promise<HealthReport>
}

const snake = (name: string): string => name.replaceAll('-', '_')

export const discovery = ({ operations, facts, protocols, health }: DiscoveryDeps) =>
  implement(contract, {
    capabilities: sharedRead(operations, async () => {
      const released = operations()
      const parts = Object.entries(sectionsOf).flatMap(([capability, sections]) => {
        const names = sections.map(snake)
        const endpoints = released.filter(({ group }) => names.includes(snake(group))).map(({ name }) => name)
        if (endpoints.length === 0) return []
        return [[capability, { endpoints, ...facts[capability as Capability] }] as const]
      })
      return { ...Object.fromEntries(parts), protocols: [...protocols] }
    }),
    health: async () => (await health()).body,
  })
