"""What every other folder may import: values, events, errors, names, settings, wire frames. No aiohttp, no engine."""
