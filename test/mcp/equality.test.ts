/** Each operation answers alike as a tool of MCP and over HTTP: results, faults, scopes and limits. */
import { compareDoors } from '../proof/support/door-suite.ts'
import { mcpDoor } from './mcp-door.ts'

compareDoors('MCP', ({ operations, url }) => mcpDoor(operations, url))
