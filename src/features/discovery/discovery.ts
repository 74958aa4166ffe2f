import { fulfil, type Operation } from '#kernel/operation.ts'
import { contract } from './contract.ts'
import type { HealthReport } from './health.ts'

/** Which sections of the interface each part of the manifest speaks for. */
const sectionsOf = {
  chat: ['chat'],
  trading: ['swap', 'security', 'hooks', 'limit-orders', 'outstanding'],
  earn: ['earn'],
  perp: ['perp'],
  spot_venue: ['spot_venue'],
  wallets: ['wallets'],
  notifications: ['notifications'],
  chains: ['chains'],
  auth: ['auth'],
} as const

export type Capability = keyof typeof sectionsOf
type Facts = Readonly<Record<string, unknown>>
/** Figures and switches of a section, taken from the tables that its functions use. */
export type CapabilityFacts = Partial<Record<Capability, Facts | (() => Facts)>>

type Needs = {
  /** All operations that have a route, this section's included. */
  operations: () => readonly Pick<Operation, 'name' | 'section' | 'entry'>[]
  facts: CapabilityFacts
  protocols: readonly string[]
  health: () => Promise<HealthReport>
}

const snake = (name: string): string => name.replaceAll('-', '_')

export const discovery = ({ operations, facts, protocols, health }: Needs) =>
  fulfil(contract, {
    capabilities: async () => {
      const released = operations()
      const parts = Object.entries(sectionsOf).flatMap(([capability, sections]) => {
        const names = sections.map(snake)
        const endpoints = released
          .filter(({ section }) => names.includes(snake(section)))
          .map(({ name }) => name)
        if (endpoints.length === 0) return []
        const told = facts[capability as Capability]
        return [[capability, { endpoints, ...(typeof told === 'function' ? told() : told) }] as const]
      })
      return { ...Object.fromEntries(parts), protocols: [...protocols] }
    },
    health: async () => (await health()).body,
  })
