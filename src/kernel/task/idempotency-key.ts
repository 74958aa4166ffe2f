import { sha256 } from '#kernel/id.ts'
import { canonicalJson } from '#kernel/wire/json.ts'

export const bodyHash = (operation: string, input: unknown): string =>
  sha256(`${operation}\n${canonicalJson(input)}`)

/**
 * Makes a key of the gateway itself. Client keys are visible ASCII, so a key with a space cannot collide with them.
 */
export const internalKey = (source: 'trigger' | 'sched' | 'chat' | 'act', name: string): string =>
  `${source} ${name}`
