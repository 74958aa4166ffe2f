// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

import {Addresses} from "./shared/Addresses.sol";

/// The oracle of every market of a local world. Its resolver makes many calls at once in its name.
contract Oracle {
    struct Call {
        address target;
        bytes data;
    }

    error NotResolver(address caller);
    error CallFailed(uint256 index, bytes reason);

    function execute(Call[] calldata calls) external {
        require(msg.sender == Addresses.RESOLVER, NotResolver(msg.sender));
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory reason) = calls[i].target.call(calls[i].data);
            require(ok, CallFailed(i, reason));
        }
    }
}
