import { type Preset, type PresetName, realistic } from './failure-presets.ts'

/** One injected failure of a server. Without `count` and `rate` it applies to every matching request. */
export type InjectedFailure = {
  latency_ms?: number
  status?: number
  html?: boolean
  drop_reply?: boolean
  refuse?: boolean
  silent?: boolean
  /** A node answers each call of the request with an error of this code. */
  rpc_code?: number
  methods?: readonly string[]
  count?: number
  rate?: number
  seed?: number
}

export type FailureInjector = {
  /** False while no failure is set, so that an undisturbed request is not parsed. */
  isSet: () => boolean
  set: (fault: InjectedFailure) => void
  clear: () => void
  current: () => (InjectedFailure & { hits: number }) | undefined
  /** The failure that applies to this request; deciding consumes a count. */
  next: (methods: readonly string[]) => InjectedFailure | undefined
  /** A preset of failures for a whole kind of server, independent of the single failure. */
  usePreset: (name: PresetName, seed: number) => void
  preset: () => ActivePreset | undefined
}

export type ActivePreset = {
  setting: Preset
  random: () => number
  /** How often each failure of the preset happened. */
  counts: Record<string, number>
}

/** Mulberry32: small, and the same seed gives the same sequence of failures on every machine. */
export const seededRandom = (seed: number) => {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export const failureInjector = (): FailureInjector => {
  let failure: InjectedFailure | undefined
  let hits = 0
  let remaining = Number.POSITIVE_INFINITY
  let random = seededRandom(1)
  let preset: ActivePreset | undefined
  return {
    isSet: () => failure !== undefined,
    set: (next) => {
      failure = next
      hits = 0
      remaining = next.count ?? Number.POSITIVE_INFINITY
      random = seededRandom(next.seed ?? 1)
    },
    clear: () => {
      failure = undefined
    },
    current: () => (failure ? { ...failure, hits } : undefined),
    next: (methods) => {
      if (!failure || remaining <= 0) return undefined
      if (failure.methods && !methods.some((method) => failure?.methods?.includes(method))) return undefined
      if (failure.rate !== undefined && random() >= failure.rate) return undefined
      remaining -= 1
      hits += 1
      return failure
    },
    usePreset: (name, seed) => {
      preset =
        name === 'quiet' ? undefined : { setting: realistic(seed), random: seededRandom(seed), counts: {} }
    },
    preset: () => preset,
  }
}

type Call = { method?: unknown; type?: unknown; action?: { type?: unknown } | null } | null

const nameOf = (call: Call): unknown => call?.method ?? call?.type ?? call?.action?.type

/** The JSON-RPC methods of a request, or the types of a venue request; a batch has several, other bodies none. */
export const methodsOf = (body: string): string[] => {
  try {
    const parsed: unknown = JSON.parse(body)
    const calls = Array.isArray(parsed) ? parsed : [parsed]
    return calls.flatMap((call: Call) => {
      const name = nameOf(call)
      return typeof name === 'string' ? [name] : []
    })
  } catch {
    return []
  }
}
