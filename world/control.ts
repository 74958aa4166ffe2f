import { advanceSecondsMax, type WorldClock } from './clock.ts'
import { worldChains } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import { presetNames } from './failure-presets.ts'
import { faucet, solanaId } from './faucet.ts'
import { readInjectedFailure } from './injected-failure-fields.ts'
import type { FailureInjector } from './injected-failures.ts'
import type { Override, PriceBook } from './prices/book.ts'
import { type Fields, HttpError, numberField, type Route, rejectUnknownFields, textField } from './router.ts'
import type { ServiceNode } from './service-process.ts'
import type { SolanaNode } from './solana-node.ts'
import type { StateFile } from './state-file.ts'
import type { VenueNode } from './venue-node.ts'

/** Services that start with their first request. */
export const providerNames = ['solver', 'lifi', 'polymarket'] as const
export type ProviderName = (typeof providerNames)[number]
export type Providers = Readonly<Record<ProviderName, ServiceNode>>
const isProvider = (id: string | undefined): id is ProviderName => providerNames.some((name) => name === id)

export type ControlDeps = {
  stateFile: StateFile
  clock: WorldClock
  injectors: ReadonlyMap<string, FailureInjector>
  nodes: readonly EvmNode[]
  solana: SolanaNode
  venue: VenueNode
  providers: Providers
  book: PriceBook
  manifest: () => Promise<unknown>
}

/** Servers that accept a preset of faults; the venue has its own. */
export const presetTargets: readonly string[] = [...worldChains.map(({ id }) => `evm:${id}`), 'solana']

const reorgDepthMax = 60
const remineMsMax = 60_000
const yieldBpsMax = 100_000

const timeRoutes = ({ clock, stateFile, nodes, solana, venue, providers }: ControlDeps): Route[] => {
  const now = () => ({ now_ms: clock.nowMs(), offset_seconds: clock.offsetSeconds() })
  return [
    { method: 'GET', path: /^\/time$/, run: now },
    {
      method: 'POST',
      path: /^\/time$/,
      run: async ({ fields }) => {
        rejectUnknownFields(fields, ['advance_seconds'])
        clock.advance(numberField(fields, 'advance_seconds', 0, advanceSecondsMax))
        stateFile.value.clock_offset_seconds = clock.offsetSeconds()
        await stateFile.save()
        // A chain that stops at this moment reads the time at its next start.
        await Promise.allSettled([
          ...nodes.map((node) => node.syncTime()),
          solana.syncTime(),
          venue.syncTime(),
          ...Object.values(providers).map((provider) => provider.syncTime()),
        ])
        return now()
      },
    },
  ]
}

const faultRoutes = ({ injectors }: ControlDeps): Route[] => {
  const injectorFor = (target: string): FailureInjector => {
    const injector = injectors.get(target)
    if (!injector) throw new HttpError(400, `target must be one of ${[...injectors.keys()].join(', ')}.`)
    return injector
  }
  const all = () => ({
    faults: [...injectors].flatMap(([target, injector]) => {
      const current = injector.current()
      return current ? [{ target, ...current }] : []
    }),
    presets: [...injectors].flatMap(([target, injector]) => {
      const preset = injector.preset()
      return preset
        ? [{ target, preset: preset.setting.name, seed: preset.setting.seed, ...preset.counts }]
        : []
    }),
  })
  /** A preset stays until another one is set: clearing a single fault does not change it. */
  const usePreset = (fields: Fields) => {
    rejectUnknownFields(fields, ['target', 'preset', 'seed'])
    const name = presetNames.find((each) => each === fields.preset)
    if (!name) throw new HttpError(400, `preset must be one of ${presetNames.join(', ')}.`)
    const seed = fields.seed === undefined ? 1 : Math.trunc(numberField(fields, 'seed', 0, 2 ** 32 - 1))
    const targets = fields.target === undefined ? presetTargets : [textField(fields, 'target')]
    const unknown = targets.find((target) => !presetTargets.includes(target))
    if (unknown !== undefined)
      throw new HttpError(400, `target of a preset must be one of ${presetTargets.join(', ')}.`)
    for (const target of targets) injectorFor(target).usePreset(name, seed)
    return all()
  }
  return [
    { method: 'GET', path: /^\/faults$/, run: all },
    {
      method: 'PUT',
      path: /^\/faults$/,
      run: ({ fields }) => {
        if (fields.preset !== undefined) return usePreset(fields)
        const { target: _, ...fault } = fields
        injectorFor(textField(fields, 'target')).set(readInjectedFailure(fault))
        return all()
      },
    },
    {
      method: 'DELETE',
      path: /^\/faults$/,
      run: ({ query, fields }) => {
        const target = query.get('target') ?? fields.target
        if (target === undefined) for (const injector of injectors.values()) injector.clear()
        else injectorFor(String(target)).clear()
        return all()
      },
    },
  ]
}

const isRunning = (node: EvmNode | SolanaNode | VenueNode | ServiceNode): boolean =>
  ('endpoint' in node ? node.endpoint() : node.port()) !== undefined

const chainRoutes = ({ nodes, solana, venue, providers }: ControlDeps): Route[] => {
  const find = (id: string | undefined) => {
    const node = nodes.find(({ chain }) => chain.id === id)
    if (node) return node
    if (id === solanaId || id === 'solana') return solana
    if (id === 'hyperliquid') return venue
    if (isProvider(id)) return providers[id]
    throw new HttpError(
      400,
      `The chain in the path must be one of ${nodes.map((each) => each.chain.id)}, ${solanaId}.`,
    )
  }
  return [
    {
      method: 'POST',
      path: /^\/chains\/([^/]+)\/(start|stop|kill)$/,
      run: async (_request, [id, verb]) => {
        const node = find(id)
        if (verb === 'start') await node.start()
        else await node.stop(verb === 'kill' ? 'SIGKILL' : 'SIGTERM')
        return { chain_id: id, running: isRunning(node) }
      },
    },
    {
      method: 'POST',
      path: /^\/chains\/([^/]+)\/history$/,
      run: ({ fields }, [id]) => {
        const node = find(id)
        if (!('storeSlots' in node))
          throw new HttpError(400, 'Only Solana can be made to forget its history.')
        rejectUnknownFields(fields, ['stored_slots'])
        return node.storeSlots(numberField(fields, 'stored_slots', 0, Number.MAX_SAFE_INTEGER))
      },
    },
    {
      method: 'POST',
      path: /^\/chains\/([^/]+)\/reorg$/,
      run: async ({ fields }, [id]) => {
        const node = find(id)
        if (!('rpc' in node)) throw new HttpError(400, 'Only EVM chains can be reorganised here.')
        rejectUnknownFields(fields, ['depth', 'remine_after_ms'])
        const depth = numberField(fields, 'depth', 1, reorgDepthMax)
        if (fields.remine_after_ms !== undefined)
          await node.reorganise(depth, numberField(fields, 'remine_after_ms', 0, remineMsMax))
        else await node.rpc().call('anvil_reorg', [depth, []])
        return { chain_id: id, depth, block_number: Number(await node.rpc().call('eth_blockNumber')) }
      },
    },
  ]
}

const priceText = (value: unknown): string => {
  const text = typeof value === 'number' ? String(value) : value
  if (typeof text === 'string' && /^\d{1,15}(\.\d{1,18})?$/.test(text)) return text
  throw new HttpError(400, 'price_usd must be a decimal number of at least 0.')
}

const priceRoutes = ({ book, stateFile }: ControlDeps): Route[] => {
  const all = () => ({
    prices: Object.fromEntries(book.symbols().map((symbol) => [symbol, book.quote(symbol)?.usd])),
  })
  return [
    { method: 'GET', path: /^\/prices$/, run: all },
    {
      method: 'POST',
      path: /^\/prices$/,
      run: async ({ fields }) => {
        rejectUnknownFields(fields, [
          'symbol',
          'price_usd',
          'spot_usd',
          'confidence',
          'age_seconds',
          'listed',
        ])
        const change: Override = {}
        if ('price_usd' in fields) change.price_usd = priceText(fields.price_usd)
        if ('spot_usd' in fields) change.spot_usd = priceText(fields.spot_usd)
        if ('confidence' in fields) change.confidence = numberField(fields, 'confidence', 0, 1)
        if ('age_seconds' in fields)
          change.age_seconds = numberField(fields, 'age_seconds', 0, advanceSecondsMax)
        if (fields.listed !== undefined) {
          if (typeof fields.listed !== 'boolean') throw new HttpError(400, 'listed must be true or false.')
          change.listed = fields.listed
        }
        if (Object.keys(change).length === 0) throw new HttpError(400, 'price_usd is missing.')
        book.set(textField(fields, 'symbol', 20), change)
        await stateFile.save()
        return all()
      },
    },
  ]
}

const vaultRoutes = ({ nodes }: ControlDeps): Route[] => {
  // Loads viem on first use, so that a restart of the world does not wait for it.
  const loadVault = async () => {
    const { vaultChain } = await import('./evm/chains.ts')
    const node = nodes.find(({ chain }) => chain.id === vaultChain)
    if (node?.endpoint() === undefined) throw new HttpError(503, "The vault's chain is stopped.")
    return { node, rpc: node.rpc(), ...(await import('./evm/vault.ts')) }
  }
  return [
    {
      method: 'GET',
      path: /^\/vault$/,
      run: async () => {
        const { rpc, readVault } = await loadVault()
        return readVault(rpc)
      },
    },
    {
      method: 'POST',
      path: /^\/vault$/,
      run: async ({ fields }) => {
        rejectUnknownFields(fields, ['drip_bps_per_year', 'donate_usdc', 'illiquid'])
        const { drip_bps_per_year: yieldBps, donate_usdc: donation, illiquid } = fields
        if (yieldBps !== undefined) numberField(fields, 'drip_bps_per_year', 0, yieldBpsMax)
        if (illiquid !== undefined && typeof illiquid !== 'boolean') {
          throw new HttpError(400, 'illiquid must be true or false.')
        }
        const donationText = donation === undefined ? undefined : String(donation)
        const [, whole = '', fraction = ''] = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(donationText ?? '0') ?? []
        if (whole === '')
          throw new HttpError(400, 'donate_usdc must be decimal text with at most 6 digits after the point.')
        const { rpc, setYield, setIlliquid, donate, readVault } = await loadVault()
        if (typeof yieldBps === 'number') await setYield(rpc, yieldBps)
        if (typeof illiquid === 'boolean') await setIlliquid(rpc, { illiquid })
        if (donationText !== undefined) await donate(rpc, BigInt(whole + fraction.padEnd(6, '0')))
        return readVault(rpc)
      },
    },
    {
      method: 'GET',
      path: /^\/effects$/,
      run: async ({ query }) => {
        if (query.get('contract') !== 'vault') throw new HttpError(400, 'contract must be vault.')
        const { node, vaultEffects } = await loadVault()
        const effects = await vaultEffects(node, query.get('owner') ?? undefined)
        return { contract: 'vault', count: effects.length, effects }
      },
    },
  ]
}

type Forward = VenueNode['control']

/** Settings and records of a service that has a control port of its own. */
const forwardedRoutes = (prefix: string, forward: Forward): Route[] =>
  ['GET', 'POST', 'DELETE'].map((method) => ({
    method,
    path: new RegExp(`^${prefix}(/.*)$`),
    run: async ({ query, fields }, [path = '/']) => {
      const search = query.size > 0 ? `?${query}` : ''
      const body = method === 'GET' ? undefined : fields
      const { status, reply } = await forward(method, `${path}${search}`, body)
      if (status === 200) return reply
      const { error, detail } = reply as { error?: string; detail?: string }
      throw new HttpError(status, error ?? detail ?? 'The service refuses.')
    },
  }))

export const controlRoutes = (deps: ControlDeps): Route[] => {
  const fund = faucet(deps)
  return [
    { method: 'GET', path: /^\/$/, run: () => deps.manifest() },
    { method: 'POST', path: /^\/faucet\/fund$/, run: ({ fields }) => fund(fields) },
    ...timeRoutes(deps),
    ...faultRoutes(deps),
    ...chainRoutes(deps),
    ...priceRoutes(deps),
    ...vaultRoutes(deps),
    ...forwardedRoutes('/venues/hyperliquid', deps.venue.control),
    ...forwardedRoutes('/venues/polymarket', deps.providers.polymarket.control),
    ...forwardedRoutes('/solver', deps.providers.solver.control),
    ...forwardedRoutes('/lifi', deps.providers.lifi.control),
  ]
}
