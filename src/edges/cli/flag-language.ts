import { operations } from '#sdk/operations.ts'
import { type Command, commands } from './commands.ts'

/** Says in the words of the command line what a text of the gateway says in those of the interface. */

const byName = new Map(commands.map((command) => [command.name, command]))
const routes = operations.map(({ name, method, path }) => ({
  name,
  method,
  pattern: new RegExp(`^${path.replace(/\{[^}]+\}/g, '[^/]+')}$`),
}))

const commandText = ({ group, verb }: Command): string => `portico ${group} ${verb}`

function fieldText({ fields, waitSeconds }: Command, name: string): string | undefined {
  if (waitSeconds !== undefined && (name === 'wait' || name === 'timeout')) return `--${name}`
  const field = fields.find((each) => each.name === name)
  return field && (field.isPath ? `<${field.name}>` : `--${field.flag}`)
}

/** Returns the flag of the first of these commands that takes the field. */
const flagOf = (name: string, among: readonly Command[]): string | undefined => {
  for (const command of among) {
    const flag = fieldText(command, name)
    if (flag !== undefined) return flag
  }
  return undefined
}

const routeText = (method: string, path: string): string | undefined => {
  const route = routes.find((each) => each.method === method && each.pattern.test(path))
  const command = route && byName.get(route.name)
  return command && commandText(command)
}

/**
 * Names operations as commands, and input fields of `command` as flags: `tasks_get` becomes `portico tasks get`, and
 * `amount_usdc` becomes `--amount-usdc`. What is neither stays.
 */
export function inFlags(text: string, command?: Command): string {
  const named = [...text.matchAll(/`([a-z][a-z0-9_]*)`/g)].flatMap(([, name = '']) => byName.get(name) ?? [])
  return text
    .replace(
      /\b(GET|POST|PUT|PATCH|DELETE) (\/[\w./{}-]*[\w}])(?: with \{\})?/g,
      (whole, method: string, path: string) => routeText(method, path) ?? whole,
    )
    .replace(
      /`([a-z][a-z0-9_]*)(?:(=|: )([\w.-]+))?`/g,
      (whole, name: string, sign?: string, value?: string) => {
        const operation = byName.get(name)
        if (operation && sign === undefined) return `\`${commandText(operation)}\``
        const flag = flagOf(name, command ? [command, ...named] : named)
        if (flag === undefined) return whole
        return sign === undefined || value === 'true' ? `\`${flag}\`` : `\`${flag} ${value}\``
      },
    )
    .replace(/\bwait=true\b/g, '--wait')
}
