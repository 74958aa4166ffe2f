import { implement, type Operation, sharedRead } from '#kernel/contract/operation.ts'
import { type Capability, capabilities, contract } from './contract.ts'
import type { HealthReport } from './health.ts'

/** The facts that a section publishes about itself in the manifest. */
export type Released = {
  /** The part of the manifest that lists the operations of this section; absent if no part lists them. */
  part?: Capability
  operations?: readonly Pick<Operation, 'name'>[]
  /** The limits and switches of the section for the manifest, from the values that its functions use. */
  facts?: Readonly<Record<string, unknown>>
}

type DiscoveryDeps = {
  /** Returns all sections of the gateway, discovery included. */
  sections: () => readonly Released[]
  health: () => HealthReport | Promise<HealthReport>
}

const protocols = ['http', 'sse', 'mcp']

export const createDiscovery = ({ sections, health }: DiscoveryDeps) =>
  implement(contract, {
    capabilities: sharedRead(sections, async () => {
      const parts = capabilities.flatMap((capability) => {
        const released = sections().filter(({ part }) => part === capability)
        const endpoints = released.flatMap(({ operations = [] }) => operations.map(({ name }) => name))
        const facts = released.flatMap((section) => Object.entries(section.facts ?? {}))
        if (endpoints.length === 0) return []
        return [[capability, { endpoints, ...Object.fromEntries(facts) }] as const]
      })
      return { ...Object.fromEntries(parts), protocols }
    }),
    health: async () => (await health()).body,
  })
