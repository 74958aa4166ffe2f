import { advanceSecondsMax, type WorldClock } from './clock.ts'
import { type Fields, numberField, onlyFields, Refusal, type Route, textField } from './door.ts'
import { worldChains } from './evm/chains.ts'
import type { EvmNode } from './evm/node.ts'
import { faucet, solanaId } from './faucet.ts'
import { faultFrom } from './fault-fields.ts'
import type { FaultDial } from './faults.ts'
import type { MemoryFile } from './memory.ts'
import { presetNames } from './presets.ts'
import type { Override, PriceBook } from './prices/book.ts'
import type { SolanaNode } from './solana-node.ts'
import type { VenueNode } from './venue-node.ts'

export type Parts = {
  memory: MemoryFile
  clock: WorldClock
  dials: ReadonlyMap<string, FaultDial>
  nodes: readonly EvmNode[]
  solana: SolanaNode
  venue: VenueNode
  book: PriceBook
  manifest: () => Promise<unknown>
}

/** The servers that know how to misbehave by a preset; the venue has its own. */
export const presetTargets: readonly string[] = [...worldChains.map(({ id }) => `evm:${id}`), 'solana']

const reorgDepthMax = 60
const remineMsMax = 60_000
const yieldBpsMax = 100_000

const timeRoutes = ({ clock, memory, nodes, solana, venue }: Parts): Route[] => {
  const now = () => ({ now_ms: clock.nowMs(), offset_seconds: clock.offsetSeconds() })
  return [
    { method: 'GET', path: /^\/time$/, run: now },
    {
      method: 'POST',
      path: /^\/time$/,
      run: async ({ fields }) => {
        onlyFields(fields, ['advance_seconds'])
        clock.advance(numberField(fields, 'advance_seconds', 0, advanceSecondsMax))
        memory.value.clock_offset_seconds = clock.offsetSeconds()
        await memory.save()
        // A chain that dies just now learns the time when it comes back.
        await Promise.allSettled([
          ...nodes.map((node) => node.syncTime()),
          solana.syncTime(),
          venue.syncTime(),
        ])
        return now()
      },
    },
  ]
}

const faultRoutes = ({ dials }: Parts): Route[] => {
  const dialOf = (target: string): FaultDial => {
    const dial = dials.get(target)
    if (!dial) throw new Refusal(400, `target must be one of ${[...dials.keys()].join(', ')}.`)
    return dial
  }
  const all = () => ({
    faults: [...dials].flatMap(([target, dial]) => {
      const current = dial.current()
      return current ? [{ target, ...current }] : []
    }),
    presets: [...dials].flatMap(([target, dial]) => {
      const preset = dial.preset()
      return preset
        ? [{ target, preset: preset.setting.name, seed: preset.setting.seed, ...preset.counts }]
        : []
    }),
  })
  /** A preset stays until another one is set: taking back a single fault does not touch it. */
  const usePreset = (fields: Fields) => {
    onlyFields(fields, ['target', 'preset', 'seed'])
    const name = presetNames.find((each) => each === fields.preset)
    if (!name) throw new Refusal(400, `preset must be one of ${presetNames.join(', ')}.`)
    const seed = fields.seed === undefined ? 1 : Math.trunc(numberField(fields, 'seed', 0, 2 ** 32 - 1))
    const targets = fields.target === undefined ? presetTargets : [textField(fields, 'target')]
    const unknown = targets.find((target) => !presetTargets.includes(target))
    if (unknown !== undefined)
      throw new Refusal(400, `target of a preset must be one of ${presetTargets.join(', ')}.`)
    for (const target of targets) dialOf(target).usePreset(name, seed)
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
        dialOf(textField(fields, 'target')).set(faultFrom(fault))
        return all()
      },
    },
    {
      method: 'DELETE',
      path: /^\/faults$/,
      run: ({ query, fields }) => {
        const target = query.get('target') ?? fields.target
        if (target === undefined) for (const dial of dials.values()) dial.clear()
        else dialOf(String(target)).clear()
        return all()
      },
    },
  ]
}

const isRunning = (node: EvmNode | SolanaNode | VenueNode): boolean =>
  ('place' in node ? node.place() : node.port()) !== undefined

const chainRoutes = ({ nodes, solana, venue }: Parts): Route[] => {
  const find = (id: string | undefined) => {
    const node = nodes.find(({ chain }) => chain.id === id)
    if (node) return node
    if (id === solanaId || id === 'solana') return solana
    if (id === 'hyperliquid') return venue
    throw new Refusal(
      400,
      `The chain in the path must be one of ${nodes.map((each) => each.chain.id)}, ${solanaId}.`,
    )
  }
  return [
    {
      method: 'POST',
      path: /^\/chains\/([^/]+)\/(start|stop|kill)$/,
      run: async (_visit, [id, verb]) => {
        const node = find(id)
        if (verb === 'start') await node.start()
        else await node.stop(verb === 'kill' ? 'SIGKILL' : 'SIGTERM')
        return { chain_id: id, running: isRunning(node) }
      },
    },
    {
      method: 'POST',
      path: /^\/chains\/([^/]+)\/reorg$/,
      run: async ({ fields }, [id]) => {
        const node = find(id)
        if (!('rpc' in node)) throw new Refusal(400, 'Only EVM chains can be reorganised here.')
        onlyFields(fields, ['depth', 'remine_after_ms'])
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
  throw new Refusal(400, 'price_usd must be a decimal number of at least 0.')
}

const priceRoutes = ({ book, memory }: Parts): Route[] => {
  const all = () => ({
    prices: Object.fromEntries(book.symbols().map((symbol) => [symbol, book.quote(symbol)?.usd])),
  })
  return [
    { method: 'GET', path: /^\/prices$/, run: all },
    {
      method: 'POST',
      path: /^\/prices$/,
      run: async ({ fields }) => {
        onlyFields(fields, ['symbol', 'price_usd', 'confidence', 'age_seconds', 'listed'])
        const change: Override = {}
        if ('price_usd' in fields) change.price_usd = priceText(fields.price_usd)
        if ('confidence' in fields) change.confidence = numberField(fields, 'confidence', 0, 1)
        if ('age_seconds' in fields)
          change.age_seconds = numberField(fields, 'age_seconds', 0, advanceSecondsMax)
        if (fields.listed !== undefined) {
          if (typeof fields.listed !== 'boolean') throw new Refusal(400, 'listed must be true or false.')
          change.listed = fields.listed
        }
        if (Object.keys(change).length === 0) throw new Refusal(400, 'price_usd is missing.')
        book.set(textField(fields, 'symbol', 20), change)
        await memory.save()
        return all()
      },
    },
  ]
}

const vaultRoutes = ({ nodes }: Parts): Route[] => {
  // viem is loaded with the first use: a world that starts again must not wait for it.
  const lazily = async () => {
    const { vaultChain } = await import('./evm/chains.ts')
    const node = nodes.find(({ chain }) => chain.id === vaultChain)
    if (node?.place() === undefined) throw new Refusal(503, "The vault's chain is stopped.")
    return { node, rpc: node.rpc(), ...(await import('./evm/vault.ts')) }
  }
  return [
    {
      method: 'GET',
      path: /^\/vault$/,
      run: async () => {
        const { rpc, vaultNow } = await lazily()
        return vaultNow(rpc)
      },
    },
    {
      method: 'POST',
      path: /^\/vault$/,
      run: async ({ fields }) => {
        onlyFields(fields, ['drip_bps_per_year', 'donate_usdc', 'illiquid'])
        const { drip_bps_per_year: drip, donate_usdc: gift, illiquid } = fields
        if (drip !== undefined) numberField(fields, 'drip_bps_per_year', 0, yieldBpsMax)
        if (illiquid !== undefined && typeof illiquid !== 'boolean') {
          throw new Refusal(400, 'illiquid must be true or false.')
        }
        const giftText = gift === undefined ? undefined : String(gift)
        const [, whole = '', fraction = ''] = /^(\d{1,12})(?:\.(\d{1,6}))?$/.exec(giftText ?? '0') ?? []
        if (whole === '')
          throw new Refusal(400, 'donate_usdc must be decimal text with at most 6 digits after the point.')
        const { rpc, setYield, setIlliquid, donate, vaultNow } = await lazily()
        if (typeof drip === 'number') await setYield(rpc, drip)
        if (typeof illiquid === 'boolean') await setIlliquid(rpc, illiquid)
        if (giftText !== undefined) await donate(rpc, BigInt(whole + fraction.padEnd(6, '0')))
        return vaultNow(rpc)
      },
    },
    {
      method: 'GET',
      path: /^\/effects$/,
      run: async ({ query }) => {
        if (query.get('contract') !== 'vault') throw new Refusal(400, 'contract must be vault.')
        const { node, vaultEffects } = await lazily()
        const effects = await vaultEffects(node, query.get('owner') ?? undefined)
        return { contract: 'vault', count: effects.length, effects }
      },
    },
  ]
}

/** Prices, faults and the record of the venue, under its own names. */
const venueRoutes = ({ venue }: Parts): Route[] =>
  ['GET', 'POST', 'DELETE'].map((method) => ({
    method,
    path: /^\/venues\/hyperliquid(\/.*)$/,
    run: async ({ query, fields }, [path = '/']) => {
      const search = query.size > 0 ? `?${query}` : ''
      const body = method === 'GET' ? undefined : fields
      const { status, said } = await venue.control(method, `${path}${search}`, body)
      if (status === 200) return said
      const { error, detail } = said as { error?: string; detail?: string }
      throw new Refusal(status, error ?? detail ?? 'The venue refuses.')
    },
  }))

export const controlRoutes = (parts: Parts): Route[] => {
  const fund = faucet(parts)
  return [
    { method: 'GET', path: /^\/$/, run: () => parts.manifest() },
    { method: 'POST', path: /^\/faucet\/fund$/, run: ({ fields }) => fund(fields) },
    ...timeRoutes(parts),
    ...faultRoutes(parts),
    ...chainRoutes(parts),
    ...priceRoutes(parts),
    ...vaultRoutes(parts),
    ...venueRoutes(parts),
  ]
}
