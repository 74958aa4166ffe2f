import { Fault } from '#kernel/contract/fault.ts'

/**
 * The address of a client says which tools it gets: `/mcp?sections=swap,perp&mode=read`. Without `sections` these are
 * the main tools, through which all others are found and called.
 */
export type Selection = {
  /** The same for all spellings of one selection. */
  key: string
  /** Whether the main tools are among them, with those that find and call all others. */
  hasMain: boolean
  /** The sections of which all tools are selected. */
  sections: ReadonlySet<string>
  readsOnly: boolean
}

const mainName = 'default'
const everyName = 'all'
const readMode = 'read'

export const mainSelection: Selection = { key: '', hasMain: true, sections: new Set(), readsOnly: false }

/** Returns the function that reads the selection of an address. It throws a 422 that names the parameter. */
export function selectionReader(groups: readonly string[], otherNames: readonly string[] = []) {
  const known = [mainName, everyName, ...groups]
  return (url: string): Selection => {
    const at = url.indexOf('?')
    if (at < 0) return mainSelection
    const query = new URLSearchParams(url.slice(at + 1))
    for (const name of query.keys())
      if (name !== 'sections' && name !== 'mode' && !otherNames.includes(name))
        throw refused(
          name,
          'extra_forbidden',
          'There is no such parameter; this address takes `sections` and `mode`',
        )
    const named = query.getAll('sections').flatMap((text) => text.split(','))
    const unknown = named.find((name) => !known.includes(name))
    if (unknown !== undefined)
      throw refused(
        'sections',
        'literal_error',
        `Input should be one or more of ${known.join(', ')}, with commas between`,
      )
    const modes = query.getAll('mode')
    if (modes.some((mode) => mode !== readMode))
      throw refused(
        'mode',
        'literal_error',
        `Input should be '${readMode}'; leave \`mode\` out for tools that act, too`,
      )
    const sections = new Set(groups.filter((group) => named.includes(group) || named.includes(everyName)))
    const hasMain = named.length === 0 || named.includes(mainName)
    const readsOnly = modes.length > 0
    return { key: [hasMain, [...sections], readsOnly].join(';'), hasMain, sections, readsOnly }
  }
}

const refused = (name: string, type: string, msg: string): Fault =>
  new Fault('validation', 'The request is not valid', {
    issues: [{ location: 'query', path: [name], msg, type }],
  })

/** Returns the part of an address that says which tools a client gets, such as `?mode=read`; empty for the main tools. */
export function selectionQuery(url: string): string {
  const query = new URL(url, 'http://host').searchParams
  const chosen = new URLSearchParams([...query].filter(([name]) => name === 'sections' || name === 'mode'))
  return chosen.size === 0 ? '' : `?${chosen}`
}
